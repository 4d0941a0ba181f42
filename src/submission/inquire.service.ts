import { assertNever } from '../domain/assert.js';
import { isFinal, type PaymentState } from '../domain/payment-state.js';
import {
  CLASS_RULES,
  isLadderSpent,
  nextInquiryMs,
  nextPollMs,
  REVIEW_LOOKUP_MS,
} from '../domain/submission-policy.js';
import type { FinalState, InquireAnswer } from '../../workflows/contract.js';
import type { Database } from '../persistence/database.js';
import type { MoveResult } from '../payments/gate.js';
import type { LookupAnswer, PaymentProvider } from '../providers/payment-provider.js';
import type { AbsenceProver } from './absence-prover.js';
import type { Providers } from './arming.service.js';
import { UnknownPayment } from './begin-submission.service.js';
import type { InquiryNotes } from './inquiry-notes.js';
import { escalate, settleByLookup } from './inquiry.store.js';
import { readOpenOutcome, type OpenOutcome } from './open-outcome.store.js';
import type { ProviderLookup } from './provider-lookup.js';
import type { Resender } from './resender.js';
import type { SubmissionEvents } from './submission-events.js';
import type { WorkerLease } from './worker-lease.js';

/** Nothing is decided yet: ask again after `afterMs`. */
export type Undecided = { readonly kind: 'undecided'; readonly afterMs: number };

/** When another one moved the payment, the next try reads where it stands. */
const LOOK_AGAIN_MS = 50;
const SHORTEST_ASK_MS = 5_000;
/** An open breaker keeps inquiries back no longer than this, where the key's life does not end the wait sooner. */
const LONGEST_BREAKER_WAIT_MS = 24 * 3_600_000;
/** The breaker is looked at again at least this often. */
const BREAKER_LOOK_MS = 10_000;

export interface InquireParts {
  readonly database: Database;
  readonly lease: WorkerLease;
  readonly providers: Providers;
  readonly lookups: ProviderLookup;
  readonly resender: Resender;
  readonly absence: AbsenceProver;
  readonly notes: InquiryNotes;
  readonly events: SubmissionEvents;
  /** Test rigs run inquiries that many times faster. */
  readonly ladderDivisor: number;
}

/** Asks the provider what became of a payment that it acknowledged or that nobody knows about. */
export class InquireService {
  constructor(private readonly parts: InquireParts) {}

  /**
   * One step of the inquiry: a lookup where the provider has one, and what follows from it.
   * @returns stopped; review; resend when the payment is in `submitting` again; undecided with the
   * ms until the next step, by the ladder for `unknown`, doubling for `submitted`.
   * @throws UnknownPayment; faults of storage: call again. Twice: one more lookup, which is harmless.
   */
  async inquire(input: { readonly paymentId: string }): Promise<InquireAnswer | Undecided> {
    const payment = await readOpenOutcome(this.parts.database, input.paymentId);
    if (!payment) throw new UnknownPayment(input.paymentId);
    const standing = answerFor(payment);
    if (standing) return standing;
    const waitMs = Math.max(payment.nextActionInMs ?? 0, breakerWaitMs(payment));
    if (waitMs > LOOK_AGAIN_MS) return { kind: 'undecided', afterMs: Math.ceil(waitMs) };
    return this.ask(payment);
  }

  /**
   * The same step for a payment that this worker just took because its inquiry is due, whose run waits
   * for what comes of it: every move out of the open states wakes it.
   * @throws faults of storage: its claim ends by itself. Twice: one more lookup.
   */
  async inquireTaken(payment: OpenOutcome): Promise<void> {
    const waitMs = breakerWaitMs(payment);
    if (waitMs > LOOK_AGAIN_MS) await this.parts.notes.plan(payment, waitMs);
    else await this.ask(payment);
  }

  private async ask(payment: OpenOutcome): Promise<InquireAnswer | Undecided> {
    const provider = this.parts.providers.get(payment.provider);
    if (!provider || payment.capabilityClass === null) {
      return this.after(await this.escalate(payment, 'provider_unknown', null));
    }
    if (!CLASS_RULES[payment.capabilityClass].looksUp) return this.withoutLookup(provider, payment);
    const answer = await this.parts.lookups.ask(provider, payment, { by: 'any' });
    return this.follow(provider, payment, answer);
  }

  /**
   * One lookup of a payment that people decide about: decisive evidence settles it (T20), anything
   * else is filed for them, silence too. Asks nobody when the payment is in another state or its
   * provider cannot be asked.
   * @throws faults of storage. Twice: one more lookup.
   */
  async reviewLookup(input: { readonly paymentId: string }): Promise<'settled' | 'filed' | 'not_asked'> {
    const { database, providers, lookups, ladderDivisor } = this.parts;
    const payment = await readOpenOutcome(database, input.paymentId);
    const provider = payment && providers.get(payment.provider);
    if (!payment || !provider || payment.state !== 'needs_review' || payment.capabilityClass === null) {
      return 'not_asked';
    }
    if (!CLASS_RULES[payment.capabilityClass].looksUp) return 'not_asked';
    const answer = await lookups.ask(provider, payment, { by: 'any' });
    const status = answer.kind === 'found' ? answer.result.status : null;
    if (answer.kind !== 'found' || status === null || status === 'inert') {
      await this.parts.notes.file(payment, answer);
      if (answer.kind === 'found_other' || answer.kind === 'found_many')
        this.parts.events.contradiction(payment.id);
      return 'filed';
    }
    const to = status === 'pending' ? 'submitted' : status;
    const actor = `worker:${this.parts.lease.id}`;
    const result = await settleByLookup(database, payment, answer, to, actor, nextPollMs(0, ladderDivisor));
    if (result.kind !== 'moved') return 'filed';
    if (result.to === 'needs_review') {
      this.tellOfOlder(payment, result.from);
      return 'filed';
    }
    this.parts.events.moved({ from: result.from, to: result.to, cause: 'record-outcome' });
    return 'settled';
  }

  /** Nobody can be asked: the key alone may be tried again, or people decide. */
  private async withoutLookup(
    provider: PaymentProvider,
    payment: OpenOutcome,
  ): Promise<InquireAnswer | Undecided> {
    if (payment.state === 'unknown') {
      if (payment.capabilityClass === 'D') {
        return this.after(await this.escalate(payment, 'cannot_be_asked', null));
      }
      if (await this.resend(provider, payment)) return { kind: 'resend' };
    }
    return this.later(provider, payment);
  }

  private async follow(
    provider: PaymentProvider,
    payment: OpenOutcome,
    answer: LookupAnswer,
  ): Promise<InquireAnswer | Undecided> {
    switch (answer.kind) {
      case 'found':
        return this.adopt(provider, payment, answer);
      case 'found_other':
      case 'found_many':
        this.parts.events.contradiction(payment.id);
        return this.after(await this.escalate(payment, answer.kind, answer));
      case 'absent': {
        await this.parts.notes.file(payment, answer);
        if (payment.state === 'unknown') {
          if (await this.resend(provider, payment)) return { kind: 'resend' };
          if (await this.parts.absence.prove(provider, payment)) return { kind: 'stopped', state: 'failed' };
        }
        return this.later(provider, payment);
      }
      case 'cannot_tell':
        await this.parts.notes.file(payment, answer);
        return this.later(provider, payment);
      default:
        return assertNever(answer);
    }
  }

  /** A hit that is our instruction decides, whatever it says. One that moves nothing may be committed again. */
  private async adopt(
    provider: PaymentProvider,
    payment: OpenOutcome,
    answer: Extract<LookupAnswer, { kind: 'found' }>,
  ): Promise<InquireAnswer | Undecided> {
    const { database, ladderDivisor, events, lease } = this.parts;
    const status = answer.result.status;
    if (status === null || status === 'inert' || (status === 'pending' && payment.state === 'submitted')) {
      await this.parts.notes.file(payment, answer);
      if (status === 'inert' && payment.state === 'unknown' && (await this.resend(provider, payment))) {
        return { kind: 'resend' };
      }
      return this.later(provider, payment);
    }
    const to = status === 'pending' ? 'submitted' : status;
    const pollMs = nextPollMs(0, ladderDivisor);
    const result = await settleByLookup(database, payment, answer, to, `worker:${lease.id}`, pollMs);
    if (result.kind === 'moved' && result.to === 'needs_review') this.tellOfOlder(payment, result.from);
    else if (result.kind === 'moved') {
      events.moved({ from: result.from, to: result.to, cause: 'record-outcome' });
      if (to === 'submitted') return { kind: 'undecided', afterMs: pollMs };
      return { kind: 'stopped', state: to };
    }
    return this.after(result);
  }

  /** A hit of an older generation gave the payment to people. */
  private tellOfOlder(payment: OpenOutcome, from: PaymentState): void {
    this.parts.events.moved({ from, to: 'needs_review', cause: 'escalate' });
    this.parts.events.contradiction(payment.id);
  }

  /** After an attempt that ended beyond the ladder nothing is sent again: people decide. */
  private resend(provider: PaymentProvider, payment: OpenOutcome): Promise<boolean> {
    if (isLadderSpent(payment.firstToLastMs ?? 0, this.parts.ladderDivisor)) return Promise.resolve(false);
    return this.parts.resender.resend(provider, payment);
  }

  /** The next step in time, or people when there is none. */
  private async later(provider: PaymentProvider, payment: OpenOutcome): Promise<InquireAnswer | Undecided> {
    const { ladderDivisor } = this.parts;
    const inMs =
      payment.state === 'unknown'
        ? nextInquiryMs(payment.sinceFirstAmbiguousMs ?? 0, ladderDivisor)
        : payment.sinceStateMs > provider.capabilities().settlesWithinMs
          ? null
          : nextPollMs(payment.sinceStateMs, ladderDivisor);
    if (inMs === null && !waitsForBreaker(payment)) {
      return this.after(await this.escalate(payment, 'inquiry_exhausted', null));
    }
    const afterMs = inMs ?? BREAKER_LOOK_MS;
    await this.parts.notes.plan(payment, afterMs);
    return { kind: 'undecided', afterMs };
  }

  private async escalate(
    payment: OpenOutcome,
    reason: string,
    answer: LookupAnswer | null,
  ): Promise<MoveResult> {
    const { database, lease, events, ladderDivisor } = this.parts;
    const canBeAsked = payment.capabilityClass !== null && CLASS_RULES[payment.capabilityClass].looksUp;
    const nextLookupMs = canBeAsked ? REVIEW_LOOKUP_MS / ladderDivisor : null;
    const actor = `worker:${lease.id}`;
    const result = await escalate(database, payment, reason, answer, actor, nextLookupMs);
    if (result.kind === 'moved') events.moved({ from: result.from, to: 'needs_review', cause: 'escalate' });
    return result;
  }

  private after(result: MoveResult): InquireAnswer | Undecided {
    if (result.kind === 'moved' && result.to === 'needs_review') return { kind: 'review' };
    return { kind: 'undecided', afterMs: result.kind === 'missing' ? SHORTEST_ASK_MS : LOOK_AGAIN_MS };
  }
}

function answerFor(payment: OpenOutcome): InquireAnswer | null {
  if (isFinal(payment.state)) return { kind: 'stopped', state: payment.state as FinalState };
  if (payment.state === 'needs_review') return { kind: 'review' };
  return payment.state === 'unknown' || payment.state === 'submitted' ? null : { kind: 'resend' };
}

/**
 * While its lane's breaker is open, an unknown payment waits: one alert for the lane, not a case for
 * each of its payments. Not beyond the life of the key, after which waiting gives up the resend.
 */
function waitsForBreaker(payment: OpenOutcome): boolean {
  return (
    payment.state === 'unknown' &&
    payment.breakerProbeInMs !== null &&
    (payment.keyValidInMs ?? 0) > 0 &&
    (payment.sinceFirstAmbiguousMs ?? 0) < LONGEST_BREAKER_WAIT_MS
  );
}

/** ms until the breaker lets the next call try; 0: now, or the payment does not wait for it. */
function breakerWaitMs(payment: OpenOutcome): number {
  if (!waitsForBreaker(payment)) return 0;
  const probeMs = payment.breakerProbeInMs ?? 0;
  return probeMs <= 0 ? 0 : Math.min(probeMs, BREAKER_LOOK_MS, payment.keyValidInMs ?? 0);
}
