import { isFinal } from '../../domain/payment-state.js';
import { CALL_DEADLINE_MS } from '../../domain/submission-policy.js';
import type { DestinationCipher } from '../../encryption/destination-cipher.js';
import { providerSeconds } from '../../metrics/metrics.js';
import type { Sql } from '../../persistence/database.js';
import type { PaymentReturns } from '../../payments/payment-returns.service.js';
import type {
  Contradiction,
  NewsAnswer,
  NewsTarget,
  ProviderNews,
} from '../../payments/provider-news.service.js';
import { monotonicMs } from '../../platform/clock.js';
import type {
  LookupAnswer,
  LookupRefs,
  PaymentProvider,
  ProviderEvent,
} from '../../providers/payment-provider.js';
import { heldAgainst } from '../../providers/held-against.js';
import { capabilityClass } from '../../providers/provider-descriptor.js';
import {
  agreesWith,
  evidenceOf,
  isOtherObject,
  ourObject,
  standingOf,
  type Standing,
} from './event-comparison.js';
import { openEvent } from './stored-event.js';
import { matchEvent, type TakenEvent } from './webhook-inbox.store.js';

/** What a try to process an event came to; `done` ends it, `again` gives it back for later. */
export type EventVerdict =
  | {
      readonly kind: 'done';
      readonly result:
        'moved' | 'agreed' | 'contradiction' | 'with_people' | 'ignored' | 'left_to_inquiry' | 'not_found';
    }
  | {
      readonly kind: 'again';
      readonly result: 'unmatched' | 'undecided';
      /** However old: nobody but this event tells of it. */
      readonly isKept?: true;
    };

export interface ProcessParts {
  readonly sql: Sql;
  readonly news: ProviderNews;
  readonly returns: Pick<PaymentReturns, 'recordReturn'>;
  readonly cipher: Pick<DestinationCipher, 'decrypt' | 'openDestination'>;
}

/**
 * Longer than the ladder of inquiries: from here on the payment's own inquiry, or people, decide. Not
 * for what an inquiry would not find: a contradiction, and money that came back.
 */
const UNDECIDED_FOR_MS = 15 * 60_000;
/** Longer than providers send again. An account that others use too has events that are not ours. */
const UNMATCHED_FOR_MS = 30 * 24 * 3_600_000;

const DONE = (result: Extract<EventVerdict, { kind: 'done' }>['result']): EventVerdict => ({ kind: 'done', result }); // prettier-ignore
const UNDECIDED: EventVerdict = { kind: 'again', result: 'undecided' };
const UNDECIDED_KEPT: EventVerdict = { ...UNDECIDED, isKept: true };

/**
 * Turns one stored event into what follows from it. An event is a hint: where the provider can be
 * asked, the lookup that the event triggers moves the payment. Only where it cannot, an event that
 * equals the instruction in amount, currency, destination, payment and generation moves it.
 */
export class ProcessEvent {
  constructor(private readonly parts: ProcessParts) {}

  /**
   * @throws faults of storage, of the cipher, and bugs: the event is tried again. Twice, or by two
   * workers at once: the second finds that it agrees.
   */
  async process(provider: PaymentProvider, row: TakenEvent): Promise<EventVerdict> {
    const event = await openEvent(this.parts.cipher, row, row);
    const { providerKey, paymentId, generation, providerRef } = event;
    if (providerKey === null && paymentId === null && providerRef === null) return DONE('ignored');
    const target = await this.parts.news.find({
      provider: row.provider,
      account: row.account,
      providerKey,
      paymentId,
      generation,
      providerRef,
    });
    if (!target) {
      return row.ageMs > UNMATCHED_FOR_MS ? DONE('not_found') : { kind: 'again', result: 'unmatched' };
    }
    if (row.paymentId === null) await matchEvent(this.parts.sql, row.id, evidenceOf(target, row.type, event));
    const verdict = await this.follow(provider, row, target, event);
    const isLeft = verdict.kind === 'again' && verdict.isKept !== true && row.ageMs > UNDECIDED_FOR_MS;
    return isLeft ? DONE('left_to_inquiry') : verdict;
  }

  private async follow(
    provider: PaymentProvider,
    row: TakenEvent,
    target: NewsTarget,
    event: ProviderEvent,
  ): Promise<EventVerdict> {
    if (target.generation !== target.newestGeneration) {
      const status = event.result?.status ?? null;
      return this.ofOldGeneration(row, target, event.returned === null ? status : 'succeeded');
    }
    if (event.returned !== null) {
      const { kind } = await this.parts.returns.recordReturn({
        paymentId: target.id,
        source: 'webhook',
        ...event.returned,
      });
      if (kind === 'contradiction') return DONE('contradiction');
      if (kind === 'returned' || kind === 'added') return DONE('moved');
      if (kind === 'repeated') return DONE('agreed');
      // Its success is not known here yet: the lookup brings it, and the next try the return. What
      // some call failed after a success is the return itself, not a word about the payment.
      const isFailed = event.result?.status === 'failed';
      await this.news(provider, row, target, isFailed ? { ...event, result: null } : event);
      return UNDECIDED_KEPT;
    }
    // An object of two phases that was not released is no payment, and one of ours that was given up
    // for another moves nothing either.
    const status = event.result?.status ?? null;
    if (status === 'inert' || (status === 'failed' && isOtherObject(target, event))) return DONE('ignored');
    return this.news(provider, row, target, event);
  }

  private news(
    provider: PaymentProvider,
    row: TakenEvent,
    target: NewsTarget,
    event: ProviderEvent,
  ): Promise<EventVerdict> {
    const canAsk = !['B', 'D'].includes(capabilityClass(provider.capabilities()));
    return canAsk ? this.byLookup(provider, row, target, event) : this.byEvent(row, target, event);
  }

  /** A generation is closed only with a proof that it moved nothing: news that it did is for people. */
  private async ofOldGeneration(
    row: TakenEvent,
    target: NewsTarget,
    status: Standing['status'] | null,
  ): Promise<EventVerdict> {
    if (status !== 'succeeded' && status !== 'pending') return DONE('agreed');
    return this.contradict(row, target, 'other_generation', null);
  }

  private async byLookup(
    provider: PaymentProvider,
    row: TakenEvent,
    target: NewsTarget,
    event: ProviderEvent,
  ): Promise<EventVerdict> {
    const told = standingOf(event.result);
    // What is final and says the same needs no question, but a failed payment that lives on does.
    const isOldNews = isFinal(target.state) && told !== null && agreesWith(target.state, told.status);
    if (isOldNews && !(target.state === 'failed' && told.status === 'pending')) return DONE('agreed');
    const answer = await this.lookup(provider, target, event);
    switch (answer.kind) {
      case 'found_other':
        return this.contradict(row, target, 'found_other', { kind: 'found_other', result: answer.result });
      case 'found_many':
        return this.contradict(row, target, 'found_many', { kind: 'found_many', result: null });
      case 'absent':
      case 'cannot_tell':
        return this.unseen(row, target, told);
      case 'found': {
        const isOpenOrPaid = told?.status === 'succeeded' || told?.status === 'pending';
        if (isOpenOrPaid && isOtherObject(target, event)) {
          return this.contradict(row, target, 'other_object', { kind: 'found', result: answer.result });
        }
        const found = standingOf(answer.result);
        if (!found) return this.unseen(row, target, told);
        const { news } = this.parts;
        const moved = await news.record(target, { source: 'lookup', actor: actorOf(row), result: found });
        return moved.kind === 'superseded'
          ? this.ofOldGeneration(row, target, found.status)
          : this.compare(row, target, told, moved);
      }
    }
  }

  /** The lookup shows nothing: a word against a final state still counts, all else waits for it. */
  private async unseen(row: TakenEvent, target: NewsTarget, told: Standing | null): Promise<EventVerdict> {
    if (!isFinal(target.state)) return UNDECIDED;
    if (told === null) return DONE('agreed');
    return agreesWith(target.state, told.status)
      ? DONE('agreed')
      : this.contradict(row, target, 'contradiction', null);
  }

  /** What the lookup led to, beside what the event said: the two may not contradict each other. */
  private async compare(
    row: TakenEvent,
    target: NewsTarget,
    told: Standing | null,
    answer: Recorded,
  ): Promise<EventVerdict> {
    if (answer.kind === 'contradicts') return DONE('contradiction');
    if (answer.kind === 'with_people') return DONE('with_people');
    const state = answer.kind === 'moved' ? answer.to : answer.state;
    const isDecisive = told !== null && (told.status === 'succeeded' || told.status === 'failed');
    if (isFinal(state) && isDecisive && !agreesWith(state, told.status)) {
      return this.contradict(row, target, 'contradiction', null);
    }
    if (answer.kind === 'waits') return UNDECIDED;
    // The event names an end that the lookup does not show yet.
    if (!isFinal(state) && isDecisive) return UNDECIDED;
    return DONE(answer.kind === 'moved' ? 'moved' : 'agreed');
  }

  /** Nobody can be asked: the event itself counts, if it is our instruction to the last field. */
  private async byEvent(row: TakenEvent, target: NewsTarget, event: ProviderEvent): Promise<EventVerdict> {
    const told = standingOf(event.result);
    if (!told) return DONE('ignored');
    const other = await this.otherThanInstructed(target, event, told);
    if (other === 'not_told') return DONE('ignored');
    if (other !== null) return this.contradict(row, target, other, null);
    const { news } = this.parts;
    const answer = await news.record(target, { source: 'webhook', actor: actorOf(row), result: told });
    return answer.kind === 'superseded' ? this.ofOldGeneration(row, target, told.status) : verdictOf(answer);
  }

  /**
   * Rule 9 of the submission protocol. `not_told`: the event leaves out a part, so that nothing can be
   * compared and nothing contradicts.
   */
  private async otherThanInstructed(
    target: NewsTarget,
    event: ProviderEvent,
    { observed }: Standing,
  ): Promise<'other_money' | 'other_object' | 'not_told' | null> {
    const { amountMinor, currency, destination } = observed;
    const isOtherMoney =
      (amountMinor !== null && amountMinor !== target.amount) ||
      (currency !== null && currency !== target.currency) ||
      (destination !== null && destination !== (await this.parts.cipher.openDestination(target)));
    if (isOtherMoney) return 'other_money';
    if (isOtherObject(target, event)) return 'other_object';
    const isWhole =
      amountMinor !== null &&
      currency !== null &&
      destination !== null &&
      event.paymentId === target.id &&
      event.generation === target.generation;
    return isWhole ? null : 'not_told';
  }

  private async lookup(
    provider: PaymentProvider,
    target: NewsTarget,
    event: ProviderEvent,
  ): Promise<LookupAnswer> {
    const { by } = provider.capabilities().lookup;
    const destination = await this.parts.cipher.openDestination(target);
    // The event names another object than ours: ask for all under our reference, not for the one we know.
    const isOther = isOtherObject(target, event);
    const way = by.includes('reference') ? 'reference' : by.includes('list_scan') ? 'list_scan' : 'any';
    const refs: LookupRefs = {
      providerRef: isOther ? null : (ourObject(target) ?? event.providerRef),
      providerKey: target.providerKey,
      paymentId: target.id,
      generation: target.generation,
      sentSince: target.sentSinceMs === null ? null : new Date(target.sentSinceMs),
      by: isOther ? way : 'any',
      deadlineMs: CALL_DEADLINE_MS,
      expected: { amountMinor: target.amount, currency: target.currency, destination },
    };
    const startedAt = monotonicMs();
    const answer = await provider.lookup(refs);
    const labels = { provider: provider.name, operation: 'lookup', evidence: 'none' } as const;
    providerSeconds.observe(labels, (monotonicMs() - startedAt) / 1_000);
    return heldAgainst(target, destination, answer);
  }

  private async contradict(
    row: TakenEvent,
    target: NewsTarget,
    reason: Contradiction['reason'],
    found: Contradiction['found'],
  ): Promise<EventVerdict> {
    const source = found ? 'lookup' : 'webhook';
    const answer = await this.parts.news.contradict(target, { reason, source, actor: actorOf(row), found });
    return answer.kind === 'waits' ? UNDECIDED_KEPT : DONE('contradiction');
  }
}

/** What news about the newest generation came to. */
type Recorded = Exclude<NewsAnswer, { kind: 'superseded' }>;

function verdictOf(answer: Recorded): EventVerdict {
  switch (answer.kind) {
    case 'moved':
      return DONE('moved');
    case 'agrees':
      return DONE('agreed');
    case 'with_people':
      return DONE('with_people');
    case 'contradicts':
      return DONE('contradiction');
    case 'waits':
      return UNDECIDED;
  }
}

function actorOf({ provider }: Pick<TakenEvent, 'provider'>): string {
  return `webhook:${provider}`;
}
