import type { Cause, PaymentState } from '../domain/payment-state.js';

/** What reconciliation tells while it works, for metrics and log. Never throws, never waits. */
export interface ReconciliationEvents {
  moved(move: { readonly from: PaymentState; readonly to: PaymentState; readonly cause: Cause }): void;
  /** A settlement line against what is recorded. */
  contradiction(paymentId: string): void;
  fault(operation: string, error: unknown): void;
}

const nothing = (): void => undefined;

/** For programs that a person runs: the answer is their report, and their metrics are read by nobody. */
export const SILENT_EVENTS: ReconciliationEvents = {
  moved: nothing,
  contradiction: nothing,
  fault: nothing,
};
