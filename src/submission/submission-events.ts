import type { Cause, PaymentState } from '../domain/payment-state.js';
import type { Evidence } from '../domain/provider-outcome.js';

/** What the worker tells its metrics and its log. Every method returns at once and never throws. */
export interface SubmissionEvents {
  moved(move: {
    readonly from: PaymentState;
    readonly to: PaymentState;
    readonly cause: Cause;
    readonly count?: number;
  }): void;
  /** The gate found fewer than asked for because somebody else had moved the payment. */
  gateLost(cause: Cause): void;
  /** From the due time to the fence, ms on the database's clock. */
  callStarted(latenessMs: number): void;
  callEnded(of: {
    readonly provider: string;
    readonly operation: 'submit' | 'commit' | 'lookup' | 'cancel';
    readonly evidence: Evidence;
    readonly durationMs: number;
  }): void;
  earlyRefusal(): void;
  prepareFailed(paymentId: string, code: string): void;
  leaseLost(): void;
  /** An answer came for an attempt that was closed meanwhile; it was filed. */
  lateAnswer(paymentId: string): void;
  contradiction(paymentId: string): void;
  woken(count: number): void;
  restarted(count: number): void;
  skew(skewMs: number): void;
  fault(operation: string, error: unknown): void;
}
