/**
 * While there is more urgent work, the start of a workflow may be put off until its payment is due within
 * this time (ms): some ten thousand starts fit into it on a small machine.
 */
export const START_LEAD_MS = 900_000;
