/**
 * Told after each commit that wrote an outbox row, so that the relay need not wait for its next
 * look. A hint only: a lost one delays the row, it never loses it.
 */
export interface OutboxNudge {
  /** Returns at once and never throws. Twice: one look. */
  nudge(): void;
}

/** Injection token of the port. */
export const OUTBOX_NUDGE = Symbol('OutboxNudge');
