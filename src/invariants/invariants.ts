import { HISTORY_INVARIANTS } from './history.invariants.js';
import type { Invariant } from './invariant.js';
import { OUTCOME_INVARIANTS } from './outcome.invariants.js';
import { QUEUE_INVARIANTS } from './queue.invariants.js';
import { SETTLEMENT_INVARIANTS } from './settlement.invariants.js';
import { SUBMISSION_INVARIANTS } from './submission.invariants.js';

/** Every invariant that the stored tables can express, by number. */
export const INVARIANTS: readonly Invariant[] = [
  ...HISTORY_INVARIANTS,
  ...SUBMISSION_INVARIANTS,
  ...OUTCOME_INVARIANTS,
  ...QUEUE_INVARIANTS,
  ...SETTLEMENT_INVARIANTS,
].sort((a, b) => a.id - b.id);
