import { isFinal } from '../domain/payment-state.js';
import { CALL_DEADLINE_MS, nextInquiryMs, nextPollMs } from '../domain/submission-policy.js';
import type { FinalState, InquireAnswer } from '../../workflows/contract.js';
import type { Database } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import type { MoveResult } from '../payments/gate.js';
import type { LookupAnswer, PaymentProvider } from '../providers/payment-provider.js';
import type { Providers, SubmissionCipher } from './arming.service.js';
import { UnknownPayment } from './begin-submission.service.js';
import {
  escalate,
  fileLookup,
  planInquiry,
  readOpenOutcome,
  settleByLookup,
  type OpenOutcome,
} from './inquiry.store.js';
import { resendUnknown } from './resend.store.js';
import type { SubmissionEvents } from './submission-events.js';
import type { WorkerLease } from './worker-lease.js';

/** Nothing is decided yet: ask again after `afterMs`. */
export type Undecided = { readonly kind: 'undecided'; readonly afterMs: number };

/** When another one moved the payment, the next try reads where it stands. */
const LOOK_AGAIN_MS = 50;
const SHORTEST_ASK_MS = 5_000;

/** Asks the provider what became of a payment that it acknowledged or that nobody knows about. */
export class InquireService {
  constructor(
    private readonly database: Database,
    private readonly lease: WorkerLease,
    private readonly providers: Providers,
    private readonly cipher: SubmissionCipher,
    private readonly events: SubmissionEvents,
    private readonly ladderDivisor: number,
  ) {}

  /**
   * One step of the inquiry: a lookup, and what follows from it.
   * @returns stopped; review; resend when the payment is in `submitting` again; undecided with the
   * ms until the next step, by the ladder for `unknown`, doubling for `submitted`.
   * @throws UnknownPayment; faults of storage: call again. Twice: one more lookup, which is harmless.
   */
  async inquire(input: { readonly paymentId: string }): Promise<InquireAnswer | Undecided> {
    const payment = await readOpenOutcome(this.database, input.paymentId);
    if (!payment) throw new UnknownPayment(input.paymentId);
    const standing = this.answerFor(payment);
    if (standing) return standing;
    const waitMs = payment.nextActionInMs ?? 0;
    if (waitMs > LOOK_AGAIN_MS) return { kind: 'undecided', afterMs: Math.ceil(waitMs) };
    const provider = this.providers.get(payment.provider);
    if (!provider || payment.generation === null || payment.providerKey === null) {
      return this.after(await this.escalate(payment, 'provider_unknown', null));
    }
    const answer = await this.lookup(provider, payment, payment.generation, payment.providerKey);
    return this.follow(provider, payment, withoutOtherMoney(payment, answer));
  }

  private answerFor(payment: OpenOutcome): InquireAnswer | null {
    if (isFinal(payment.state)) return { kind: 'stopped', state: payment.state as FinalState };
    if (payment.state === 'needs_review') return { kind: 'review' };
    return payment.state === 'unknown' || payment.state === 'submitted' ? null : { kind: 'resend' };
  }

  private async lookup(
    provider: PaymentProvider,
    payment: OpenOutcome,
    generation: number,
    providerKey: string,
  ): Promise<LookupAnswer> {
    let destination: string;
    try {
      destination = this.cipher.openDestination({ ...payment, tenant_id: payment.tenantId });
    } catch (error) {
      // A hit could not be compared. The ladder goes on, so that people hear of it.
      this.events.fault('inquire', error);
      return { kind: 'cannot_tell', code: 'destination_unreadable' };
    }
    const startedAt = monotonicMs();
    const answer = await provider.lookup({
      providerRef: payment.providerRef,
      providerKey,
      paymentId: payment.id,
      generation,
      sentSince: null,
      by: 'any',
      deadlineMs: CALL_DEADLINE_MS,
      expected: {
        amountMinor: payment.amount,
        currency: payment.currency,
        destination,
      },
    });
    this.events.callEnded({
      provider: payment.provider,
      operation: 'lookup',
      evidence: answer.kind === 'found' ? 'accepted' : 'ambiguous',
      durationMs: monotonicMs() - startedAt,
    });
    return answer;
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
        this.events.contradiction(payment.id);
        return this.after(await this.escalate(payment, answer.kind, answer));
      case 'absent':
        await fileLookup(this.database, payment, answer);
        if (payment.state === 'unknown' && (await this.resend(payment))) return { kind: 'resend' };
        return this.later(provider, payment);
      case 'cannot_tell':
        await fileLookup(this.database, payment, answer);
        return this.later(provider, payment);
    }
  }

  /** A hit that is our instruction decides, whatever it says. */
  private async adopt(
    provider: PaymentProvider,
    payment: OpenOutcome,
    answer: Extract<LookupAnswer, { kind: 'found' }>,
  ): Promise<InquireAnswer | Undecided> {
    const status = answer.result.status;
    // Inert: an object that moves nothing decides nothing.
    if (status === null || status === 'inert' || (status === 'pending' && payment.state === 'submitted')) {
      await fileLookup(this.database, payment, answer);
      return this.later(provider, payment);
    }
    const to = status === 'pending' ? 'submitted' : status;
    const pollMs = nextPollMs(0, this.ladderDivisor);
    const actor = `worker:${this.lease.id}`;
    const result = await settleByLookup(this.database, payment, answer, to, actor, pollMs);
    if (result.kind === 'moved') {
      this.events.moved({ from: result.from, to: result.to, cause: 'record-outcome' });
      if (to === 'submitted') return { kind: 'undecided', afterMs: pollMs };
      return { kind: 'stopped', state: to };
    }
    return this.after(result);
  }

  private async resend(payment: OpenOutcome): Promise<boolean> {
    const opened = await resendUnknown(this.database, payment.lane, this.lease.id, payment.id, false);
    if (opened) this.events.moved({ from: 'unknown', to: 'submitting', cause: 'resend' });
    return opened;
  }

  /** The next step in time, or people when there is none. */
  private async later(provider: PaymentProvider, payment: OpenOutcome): Promise<InquireAnswer | Undecided> {
    const inMs =
      payment.state === 'unknown'
        ? nextInquiryMs(payment.sinceFirstAmbiguousMs ?? 0, this.ladderDivisor)
        : payment.sinceStateMs > provider.capabilities().settlesWithinMs
          ? null
          : nextPollMs(payment.sinceStateMs, this.ladderDivisor);
    if (inMs === null) return this.after(await this.escalate(payment, 'inquiry_exhausted', null));
    await planInquiry(this.database, payment, inMs);
    return { kind: 'undecided', afterMs: inMs };
  }

  private async escalate(
    payment: OpenOutcome,
    reason: string,
    answer: LookupAnswer | null,
  ): Promise<MoveResult> {
    const result = await escalate(this.database, payment, reason, answer, `worker:${this.lease.id}`);
    if (result.kind === 'moved')
      this.events.moved({ from: result.from, to: 'needs_review', cause: 'escalate' });
    return result;
  }

  private after(result: MoveResult): InquireAnswer | Undecided {
    if (result.kind === 'moved' && result.to === 'needs_review') return { kind: 'review' };
    return { kind: 'undecided', afterMs: result.kind === 'missing' ? SHORTEST_ASK_MS : LOOK_AGAIN_MS };
  }
}

/** A hit with another amount or currency than instructed is not ours, whatever the adapter made of it. */
function withoutOtherMoney(payment: OpenOutcome, answer: LookupAnswer): LookupAnswer {
  if (answer.kind !== 'found') return answer;
  const { amountMinor, currency } = answer.result.observed;
  const isOther =
    (amountMinor !== null && amountMinor !== payment.amount) ||
    (currency !== null && currency !== payment.currency);
  return isOther ? { kind: 'found_other', result: answer.result } : answer;
}
