/**
 * Every patch id of workflow code, with the date after which it can go (the horizon of 366 days
 * plus retention after its release). None: what changed since release 0.1 follows from what activities
 * answer and from a run's own input, so that its histories, which hold the older answers, replay.
 */
export const PATCHES = Object.freeze({});
