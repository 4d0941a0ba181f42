import type { PaymentServices } from '../../activities/payment.activities.js';
import { CALL_DEADLINE_MS } from '../domain/submission-policy.js';
import type { Life, ProviderDescriptor } from '../providers/payment-provider.js';
import type { Database } from '../persistence/database.js';
import { ArmedAborted, ArmedPayments } from './armed-payments.js';
import { ArmingService, type Providers, type SubmissionCipher } from './arming.service.js';
import { BeginSubmissionService } from './begin-submission.service.js';
import { Claimer } from './claimer.js';
import { CompletionPacer } from './completion-pacer.js';
import { DatabaseClock } from './database-clock.js';
import { DueGate } from './due-gate.js';
import { DueInquiries } from './due-inquiries.js';
import { DueTimer } from './due-timer.js';
import { InquireService } from './inquire.service.js';
import { InquiryNotes } from './inquiry-notes.js';
import { AbsenceProver } from './absence-prover.js';
import { OutcomeRecorder } from './outcome-recorder.js';
import { PaymentCommandsService } from './payment-commands.service.js';
import { ProviderCall } from './provider-call.js';
import { ProviderLookup } from './provider-lookup.js';
import { Resender } from './resender.js';
import type { SubmissionEvents } from './submission-events.js';
import { SubmitPaymentService } from './submit-payment.service.js';
import { WorkerLease } from './worker-lease.js';

/** A draining worker keeps what is due this soon; the rest goes to another one at once. */
const DRAIN_KEEP_MS = 5_000;
/** Who is due for longer waits for its lane, and can do that elsewhere. */
const DRAIN_OVERDUE_MS = 2_000;
const DRAIN_AGAIN_MS = 500;
/** Shortest life that a provider publishes is 30 min; without a word it counts as this. */
const UNPUBLISHED_LIFE_MS = 15 * 60_000;
const FOREVER_MS = 100 * 365 * 86_400_000;

/** How long attempts of a generation may go on: where there is no key, no life of one ends it. */
function attemptLifeMs({ idempotency }: ProviderDescriptor): number {
  return idempotency.mode === 'none' ? FOREVER_MS : usableKeyLifeMs(idempotency.life, idempotency.marginMs);
}

/** How long a key of this life may be used again, in ms. */
export function usableKeyLifeMs(life: Life, marginMs: number): number {
  if (life === 'forever') return FOREVER_MS;
  return (life === 'unpublished' ? UNPUBLISHED_LIFE_MS : life) - marginMs;
}

export interface EngineParts {
  readonly database: Database;
  readonly providers: Providers;
  readonly cipher: SubmissionCipher;
  readonly events: SubmissionEvents;
  readonly ladderDivisor: number;
  /** Rigs wait less for an answer; absent: CALL_DEADLINE_MS. */
  readonly callDeadlineMs?: number;
}

/** Everything that runs inside one worker's memory, from an armed payment to its recorded outcome. */
export class SubmissionEngine {
  private readonly lease: WorkerLease;
  private readonly clock: DatabaseClock;
  private readonly armed = new ArmedPayments();
  private readonly gate: DueGate;
  private readonly pacer: CompletionPacer;
  private draining: NodeJS.Timeout | null = null;
  private readonly inquiry: InquireService;
  /** Asks about open outcomes; whoever runs the worker starts and stops it. */
  readonly dueInquiries: DueInquiries;
  readonly services: PaymentServices;

  constructor(parts: EngineParts) {
    const { database, providers, cipher, events } = parts;
    this.lease = new WorkerLease(database, () => this.leaseLost(events));
    this.clock = new DatabaseClock(database, (skewMs) => events.skew(skewMs));
    const timer = new DueTimer(this.clock);
    this.gate = new DueGate(database, this.lease, this.clock, (count) =>
      events.moved({ from: 'scheduled', to: 'submitting', cause: 'begin-submission', count }),
    );
    this.pacer = new CompletionPacer(this.armed, () => this.gate.isBusy());
    const arming = new ArmingService(database, providers, cipher, (id, code) =>
      events.prepareFailed(id, code),
    );
    const claimer = new Claimer(database, this.lease, (name) => {
      const provider = providers.get(name);
      if (!provider) return 0;
      return attemptLifeMs(provider.capabilities());
    });
    const recorder = new OutcomeRecorder(database, this.lease, events, parts.ladderDivisor);
    const lookups = new ProviderLookup(cipher, events);
    const deadlineMs = parts.callDeadlineMs ?? CALL_DEADLINE_MS;
    const call = new ProviderCall(database, this.lease, providers, cipher, lookups, events, deadlineMs);
    const notes = new InquiryNotes(database);
    this.inquiry = new InquireService({
      database,
      lease: this.lease,
      providers,
      lookups,
      resender: new Resender(database, this.lease, cipher, events),
      absence: new AbsenceProver(database, this.lease, lookups, events, parts.ladderDivisor, deadlineMs),
      notes,
      events,
      ladderDivisor: parts.ladderDivisor,
    });
    this.dueInquiries = new DueInquiries({
      database, lease: this.lease, inquiry: this.inquiry, notes, events, ladderDivisor: parts.ladderDivisor,
    }); // prettier-ignore
    this.services = {
      begin: new BeginSubmissionService(
        database, this.lease, this.armed, arming, timer, this.gate, this.pacer, events,
      ), // prettier-ignore
      submit: new SubmitPaymentService(
        this.clock, this.armed, arming, timer, this.gate, claimer, recorder, this.pacer, call, events,
      ), // prettier-ignore
      inquiry: this.inquiry,
      commands: new PaymentCommandsService(database, this.armed, arming, events),
      onFault: (operation, error) => {
        // Handing on is how a worker stops; it is nobody's fault.
        if (!(error instanceof ArmedAborted)) events.fault(operation, error);
      },
    };
  }

  /** Takes a lease and measures the clock; waits for Postgres as long as it must. */
  async start(): Promise<void> {
    await this.lease.start();
    await this.clock.start();
  }

  /**
   * One lookup of a payment in review; see `InquireService.reviewLookup`.
   * @throws faults of storage. Twice: one more lookup.
   */
  reviewLookup(paymentId: string): Promise<'settled' | 'filed' | 'not_asked'> {
    return this.inquiry.reviewLookup({ paymentId });
  }

  /** Payments armed here, waiting in the gate, and results waiting to go back. */
  gauges(): {
    readonly armed: number;
    readonly waiting: number;
    readonly results: number;
    readonly gateBatches: number;
  } {
    return {
      armed: this.armed.size,
      waiting: this.gate.waiting,
      results: this.pacer.waiting,
      gateBatches: this.gate.batches,
    };
  }

  /** True while this worker may start payments: its lease is alive and its clock agrees. */
  isWell(): boolean {
    return this.lease.isHeldBy(this.lease.id) && this.clock.agrees();
  }

  /** Takes nothing new; what is due soon stays and runs, the rest goes to another worker at once. */
  drain(): void {
    this.handOn();
    this.draining ??= setInterval(() => this.handOn(), DRAIN_AGAIN_MS);
    this.draining.unref();
  }

  private handOn(): void {
    const now = this.clock.nowMs();
    const keep = (dueAtMs: number | null): boolean =>
      dueAtMs !== null && dueAtMs < now + DRAIN_KEEP_MS && dueAtMs > now - DRAIN_OVERDUE_MS;
    this.armed.drain((entry) => keep(entry.dueAtMs));
    this.gate.drop((entry) => entry.firing === 0 && !keep(entry.dueAtMs));
  }

  /** After the last activity ended: gives the lease back, so that nobody waits for it. */
  async stop(): Promise<void> {
    if (this.draining) clearInterval(this.draining);
    this.clock.stop();
    await this.lease.end();
  }

  private leaseLost(events: SubmissionEvents): void {
    events.leaseLost();
    this.armed.abortAll(new ArmedAborted('lease_lost'));
    this.gate.drop((entry) => entry.firing === 0);
  }
}
