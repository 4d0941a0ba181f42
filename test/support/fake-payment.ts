import { assert } from '../../src/domain/assert.js';
import { isFinal, isLegalEdge, type PaymentState } from '../../src/domain/payment-state.js';
import type {
  ArmHint,
  BeginSubmissionAnswer,
  FinalState,
  LookAnswer,
  SubmitPaymentAnswer,
} from '../../workflows/contract.js';

/** The database's clock of a workflow test: epoch milliseconds, moved by the test alone. */
export interface FakeClock {
  nowMs: number;
}

/** What the provider makes of one call. `notSentMs`: proven not sent, try again after so long. */
export type CallResult = 'succeeded' | 'failed' | 'pending' | 'ambiguous' | { readonly notSentMs: number };

/** What one inquiry comes to. `undecidedMs`: nothing known yet, ask again after so long. */
export type LookupResult = 'succeeded' | 'failed' | 'resend' | 'review' | { readonly undecidedMs: number };

/** Due later than this: the workflow waits, not a worker's memory. */
const FAR_MS = 130_000;
const ARM_LEAD_MS = 3_000;
/** Waits of a proven non-call up to this long happen inside submitPayment. */
const RETRY_IN_MEMORY_MS = 10_000;

/**
 * One payment as its row would be, and the gate that moves it: every move is an edge of the
 * transition table and counts the version up, a refused one answers false and changes nothing.
 */
export class FakePayment {
  state: PaymentState = 'scheduled';
  version = 1;
  /** The lane takes due payments; closed, the gate answers lane_busy. */
  laneIsOpen = true;
  laneRetryAfterMs = 60_000;
  /** The next calls' results, in order; afterwards every call succeeds. A promise: the call takes that long. */
  readonly results: (CallResult | Promise<CallResult>)[] = [];
  /** The next inquiries' results, in order; afterwards each finds the payment succeeded. */
  readonly lookups: LookupResult[] = [];
  private asksByActivity = false;
  /** Times of the provider calls, on the database's clock. */
  readonly calls: number[] = [];
  /** Set where a worker learned that the payment is final: what it holds armed ends. */
  endedHere: FinalState | null = null;
  private attempt: 'none' | 'open' | 'claimed' = 'none';
  private nextActionAtMs = 0;

  constructor(
    readonly id: string,
    private readonly clock: FakeClock,
    public dueAtMs: number,
  ) {}

  get hint(): ArmHint {
    const dueInMs = this.dueAtMs - this.clock.nowMs;
    return { version: this.version, dueInMs, armInMs: dueInMs - ARM_LEAD_MS };
  }

  /**
   * Its workers answer as those of release 0.1: the run asks the provider by an activity of its own, which
   * comes to these results in order.
   */
  askByActivity(...lookups: readonly LookupResult[]): void {
    this.asksByActivity = true;
    this.lookups.push(...lookups);
  }

  /** T5, as the API or a signal asks for it. */
  cancel(): boolean {
    return this.move(['scheduled', 'held'], 'cancelled');
  }

  /** T2: due in so many ms from now. */
  reschedule(inMs: number): boolean {
    if (!this.move(['scheduled'], 'scheduled')) return false;
    this.dueAtMs = this.clock.nowMs + inMs;
    return true;
  }

  /** T3. */
  hold(): boolean {
    return this.move(['scheduled'], 'held');
  }

  /** T4. */
  release(): boolean {
    return this.move(['held'], 'scheduled');
  }

  /** T18: two people decided. */
  resolve(to: 'succeeded' | 'failed' | 'submitted'): boolean {
    return this.move(['needs_review'], to);
  }

  /** T7 with its guard: the database's clock and an open lane. Opens an attempt that nobody claimed yet. */
  begin(): boolean {
    if (!this.laneIsOpen || this.clock.nowMs < this.dueAtMs) return false;
    if (!this.move(['scheduled'], 'submitting')) return false;
    this.attempt = 'open';
    return true;
  }

  /** One claim per attempt, and with it the one call. @returns its result, or null: nothing to claim. */
  claim(): CallResult | Promise<CallResult> | null {
    if (this.attempt !== 'open') return null;
    this.attempt = 'claimed';
    this.calls.push(this.clock.nowMs);
    return this.results.shift() ?? 'succeeded';
  }

  /** T8, T9, T10, T13, or a closed attempt that is tried again later. */
  record(result: CallResult): void {
    this.attempt = 'none';
    if (typeof result === 'object') {
      this.nextActionAtMs = this.clock.nowMs + result.notSentMs;
      return;
    }
    const to = {
      succeeded: 'succeeded',
      failed: 'failed',
      pending: 'submitted',
      ambiguous: 'unknown',
    } as const;
    assert(this.move(['submitting'], to[result]), `${this.id} was moved while its call was under way`);
  }

  /** T11 when its wait is over. */
  private tryAgain(): boolean {
    if (this.attempt !== 'none' || this.clock.nowMs < this.nextActionAtMs) return false;
    this.attempt = 'open';
    return this.move(['submitting'], 'submitting');
  }

  /** T14 to T17 by what the provider says. */
  follow(lookup: Exclude<LookupResult, object>): void {
    const to = {
      succeeded: 'succeeded',
      failed: 'failed',
      resend: 'submitting',
      review: 'needs_review',
    } as const;
    const moved = this.move(['submitted', 'unknown'], to[lookup]);
    assert(moved, `${this.id} is ${this.state}: ${lookup} does not apply`);
    if (lookup === 'resend') this.attempt = 'open';
  }

  /** What stands instead of a start; null while the payment is scheduled at this version and near. */
  beforeDue(version: number): BeginSubmissionAnswer | null {
    const isWaiting = this.state === 'scheduled' && this.version === version;
    return isWaiting && this.dueAtMs - this.clock.nowMs <= FAR_MS ? null : this.standing();
  }

  /** The answer of beginSubmission that the state gives. */
  standing(): BeginSubmissionAnswer {
    if (this.state === 'scheduled') return { kind: 'not_due', ...this.hint };
    if (this.state === 'held') return { kind: 'held', version: this.version };
    return isFinal(this.state) ? this.stopped() : { kind: 'started' };
  }

  laneBusy(): BeginSubmissionAnswer {
    return { kind: 'lane_busy', version: this.version, retryAfterMs: this.laneRetryAfterMs };
  }

  stopped(): { readonly kind: 'stopped'; readonly state: FinalState } {
    assert(isFinal(this.state), `${this.id} is ${this.state}, not final`);
    return { kind: 'stopped', state: this.state as FinalState };
  }

  /** The answer of submitPayment by where the payment stands; null: go on waiting. */
  outcome(version: number): SubmitPaymentAnswer | null {
    switch (this.state) {
      case 'scheduled':
        return this.version === version ? null : { kind: 'not_due', ...this.hint };
      case 'held':
        return { kind: 'held', version: this.version };
      case 'submitting': {
        const waitMs = this.attempt === 'none' ? this.nextActionAtMs - this.clock.nowMs : 0;
        if (waitMs > RETRY_IN_MEMORY_MS) return { kind: 'retry', afterMs: waitMs };
        this.tryAgain();
        return null;
      }
      case 'submitted':
      case 'unknown':
        return this.asksByActivity ? { kind: 'inquire' } : { kind: 'outcome_open', state: this.state };
      case 'needs_review':
        return { kind: 'review' };
      default:
        return this.stopped();
    }
  }

  /** One read of the row. */
  look(): LookAnswer {
    switch (this.state) {
      case 'scheduled':
        return { kind: 'scheduled', ...this.hint };
      case 'held':
        return { kind: 'held', version: this.version };
      case 'submitting':
        return { kind: 'submitting' };
      case 'submitted':
      case 'unknown':
        return this.asksByActivity ? { kind: 'inquire' } : { kind: 'outcome_open', state: this.state };
      case 'needs_review':
        return { kind: 'review' };
      default:
        return this.stopped();
    }
  }

  private move(from: readonly PaymentState[], to: PaymentState): boolean {
    if (!from.includes(this.state)) return false;
    assert(isLegalEdge(this.state, to), `${this.state} to ${to} is no edge of the transition table`);
    this.state = to;
    this.version++;
    return true;
  }
}
