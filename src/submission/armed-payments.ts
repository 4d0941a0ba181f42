import type { ArmedPayment, BeginSubmissionAnswer, FinalState } from '../../workflows/contract.js';
import type { LaneCalls } from './lane-calls.js';
import type { Prepared } from './begin-submission.store.js';
import type { Instruction } from './submission.store.js';

/** An armed activity was given up on purpose; Temporal hands it to another worker, or here again. */
export class ArmedAborted extends Error {
  constructor(readonly reason: 'draining' | 'lease_lost') {
    super(reason);
  }
}

export type Role = 'begin' | 'submit';

/** What is known once the row was read and the request built. */
export type Loaded =
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'ready';
      readonly instruction: Instruction;
      /** Null when the adapter refused to build the request: the payment is held once it is due. */
      readonly prepared: Prepared | null;
      readonly refusal: string | null;
    };

/**
 * One payment at one version, waiting in this worker's memory. Both activities of a pair share it,
 * and so does a second pair of the same version; a newer version is another entry, since an old
 * one's `not_due` must not end a new one's wait.
 */
export class ArmedEntry {
  begins = 0;
  submits = 0;
  pending = 0;
  /** Provider calls under way for this entry. */
  firing = 0;
  /** A call of this lane that the due gate reserved, until a submit takes it over. */
  reserved: LaneCalls | null = null;
  /** When the gate granted the start (monotonic ms); null before. */
  grantedAtMs: number | null = null;
  /** Set when the row was read. */
  dueAtMs: number | null = null;
  loaded: Promise<Loaded> | null = null;
  /** Resolvers of activities that are done and wait for the pacer. */
  readonly leaving: (() => void)[] = [];

  readonly started: Promise<BeginSubmissionAnswer>;
  readonly over: Promise<FinalState>;
  readonly aborted: Promise<never>;
  tellStarted!: (answer: BeginSubmissionAnswer) => void;
  tellOver!: (state: FinalState) => void;
  abort!: (reason: ArmedAborted) => void;

  constructor(
    readonly paymentId: string,
    readonly version: number,
    readonly lane: string,
  ) {
    this.started = new Promise((resolve) => (this.tellStarted = resolve));
    this.over = new Promise((resolve) => (this.tellOver = resolve));
    this.aborted = new Promise((_, reject) => (this.abort = reject));
    this.aborted.catch(() => undefined);
  }

  get key(): string {
    return `${this.paymentId}/${this.version}`;
  }

  /** Hands the reserved call to a submit, which gives it back. False when there is none. */
  takeReserved(): boolean {
    const isReserved = this.reserved !== null;
    this.reserved = null;
    return isReserved;
  }

  /** Gives a reserved call back that no submit took. Twice: nothing. */
  freeCall(): void {
    this.reserved?.free();
    this.reserved = null;
  }
}

/** Every armed payment of this worker. */
export class ArmedPayments {
  private readonly entries = new Map<string, ArmedEntry>();
  private readonly byPayment = new Map<string, Set<ArmedEntry>>();
  private draining = false;

  /** Payments held now. */
  get size(): number {
    return this.entries.size;
  }

  get isDraining(): boolean {
    return this.draining;
  }

  /** Joins or makes the entry of this payment and version. @throws ArmedAborted while draining. */
  enter(input: ArmedPayment, role: Role): ArmedEntry {
    if (this.draining) throw new ArmedAborted('draining');
    const fresh = new ArmedEntry(input.paymentId, input.version, input.lane);
    const entry = this.entries.get(fresh.key) ?? fresh;
    if (entry === fresh) {
      this.entries.set(entry.key, entry);
      const siblings = this.byPayment.get(entry.paymentId) ?? new Set();
      this.byPayment.set(entry.paymentId, siblings.add(entry));
    }
    entry.pending++;
    if (role === 'begin') entry.begins++;
    else entry.submits++;
    return entry;
  }

  /** One activity of the entry is done. @returns true when it was the last one. */
  leave(entry: ArmedEntry): boolean {
    entry.pending--;
    if (entry.pending > 0) return false;
    if (this.entries.get(entry.key) === entry) this.entries.delete(entry.key);
    entry.freeCall();
    const siblings = this.byPayment.get(entry.paymentId);
    siblings?.delete(entry);
    if (siblings?.size === 0) this.byPayment.delete(entry.paymentId);
    return true;
  }

  /** The payment is final: whoever waits for it here, in whichever version, answers now. */
  endAll(paymentId: string, state: FinalState): void {
    for (const entry of this.byPayment.get(paymentId) ?? []) entry.tellOver(state);
  }

  /** The lease was lost: everything that is not in the middle of a call starts again elsewhere. */
  abortAll(reason: ArmedAborted): void {
    for (const entry of this.entries.values()) if (entry.firing === 0) entry.abort(reason);
  }

  /** Takes nothing new; gives up what `keep` does not keep. */
  drain(keep: (entry: ArmedEntry) => boolean): void {
    this.draining = true;
    for (const entry of this.entries.values()) {
      if (entry.firing === 0 && !keep(entry)) entry.abort(new ArmedAborted('draining'));
    }
  }
}
