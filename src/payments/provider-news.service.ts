import type { PaymentState } from '../domain/payment-state.js';
import { contradictionsTotal, transitionsTotal } from '../metrics/metrics.js';
import type { Database, Sql } from '../persistence/database.js';
import type { ProviderResult } from '../providers/payment-provider.js';
import { move } from './gate.js';
import { stepFor, type NewsSource, type NewsStep } from './provider-news.js';
import {
  acceptWhileSubmitting,
  fileNews,
  findByNews,
  holdForNews,
  pauseLaneByNews,
  type NewsRefs,
  type NewsTarget,
} from './provider-news.store.js';
import { escalateBeforeCall, escalateToReview, openCase, settleInReview } from './review-moves.js';

export type { NewsRefs, NewsTarget };

export interface News {
  readonly source: NewsSource;
  /** One line, for the history: who brought the news. */
  readonly actor: string;
  /** About an object that is our instruction: amount, currency, destination, payment and generation are equal. */
  readonly result: ProviderResult & { readonly status: NonNullable<ProviderResult['status']> };
}

/** Why the provider's news cannot be about what we instructed. */
export type ContradictionReason =
  'contradiction' | 'found_other' | 'found_many' | 'other_money' | 'other_object' | 'other_generation';

export interface Contradiction {
  readonly reason: ContradictionReason;
  readonly source: NewsSource;
  readonly actor: string;
  /** What a lookup found, to be filed; null for an event, which is filed when it is matched. */
  readonly found: { readonly kind: 'found' | 'found_other' | 'found_many'; readonly result: ProviderResult | null } | null; // prettier-ignore
}

/**
 * What news came to.
 * moved: the payment is in `to` now. Others name the state that was found, as `NewsStep` says; a
 * contradiction has opened a case, unless one was open. superseded: the news is about a generation that
 * is not the newest any more, and was only filed; if it tells of a payment, it contradicts.
 */
export type NewsAnswer =
  | { readonly kind: 'moved'; readonly to: PaymentState }
  | { readonly kind: Exclude<NewsStep['kind'], 'move'>; readonly state: PaymentState }
  | { readonly kind: 'superseded'; readonly state: PaymentState };

/**
 * Applies what a provider says of a payment outside the payment's own calls and inquiries: events,
 * and lookups that events ask for. Every move goes through the gate under the row's lock, so that old
 * or doubled news, a poll at the same time and the payment's own call cannot move it twice or back.
 */
export class ProviderNews {
  /** @param pollMs until a payment that is now acknowledged is asked after, in ms. */
  constructor(
    private readonly database: Database,
    private readonly pollMs: number,
  ) {}

  /** The payment that news is about; null: none, or what the news names does not fit together. */
  find(refs: NewsRefs): Promise<NewsTarget | null> {
    return findByNews(this.database, refs);
  }

  /**
   * Moves the payment by what the provider says of our object (T8, T9, T14, T17, T20), wakes its
   * workflow, and files the lookup's hit. A word against a final state opens a case.
   * @throws faults of storage: nothing is known, call again. Twice: the second call agrees.
   */
  async record(target: NewsTarget, news: News): Promise<NewsAnswer> {
    const { answer, from } = await this.database.transaction(async (tx): Promise<Told> => {
      const held = await holdForNews(tx, target.id);
      // An event is filed when it is matched; in review the gate wants what came since it began.
      if (news.source === 'lookup') await fileNews(tx, target, { ...news, kind: 'found' });
      else if (held.state === 'needs_review') await fileNews(tx, target, { ...news, kind: 'told' });
      // A new generation was opened since the target was found: this news is not about it.
      if (held.newestGeneration !== target.generation) {
        return { answer: { kind: 'superseded', state: held.state }, from: null };
      }
      const isCurrent = news.source === 'lookup' && held.state === target.state;
      const step = stepFor(held.state, news.result.status, isCurrent, held.caseReason);
      if (step.kind === 'contradicts') await openCase(tx, { paymentId: target.id, reason: 'contradiction' });
      if (step.kind !== 'move') return { answer: { kind: step.kind, state: held.state }, from: null };
      return (await this.apply(tx, target, news, step))
        ? { answer: { kind: 'moved', to: step.to }, from: held.state }
        : { answer: { kind: 'with_people', state: held.state }, from: null };
    });
    if (answer.kind === 'contradicts') contradictionsTotal.add({ source: news.source });
    if (answer.kind === 'moved' && from)
      transitionsTotal.add({ from, to: answer.to, cause: 'record-outcome' });
    return answer;
  }

  /**
   * The provider has something that is not our instruction, or two of it: people decide. T16 from
   * `submitted` and `unknown`, and from `submitting` before a call goes out; a final payment gets a case
   * and keeps its state; while our own call is under way the news waits, and must come again. Several
   * objects pause the lane, whatever the state.
   * @throws faults of storage: call again. Twice: one case.
   */
  async contradict(target: NewsTarget, news: Contradiction): Promise<NewsAnswer> {
    const paymentId = target.id;
    const { answer, from } = await this.database.transaction(async (tx): Promise<Told> => {
      if (news.reason === 'found_many') await pauseLaneByNews(tx, target.lane);
      const { state } = await holdForNews(tx, paymentId);
      if (news.found) await fileNews(tx, target, { source: news.source, ...news.found });
      return tellPeople(tx, { paymentId, state, reason: news.reason, actor: news.actor });
    });
    const isNews = answer.kind === 'contradicts' || answer.kind === 'moved';
    if (isNews) contradictionsTotal.add({ source: news.source });
    if (from) transitionsTotal.add({ from, to: 'needs_review', cause: 'escalate' });
    return answer;
  }

  /** @returns false only in review, where the gate asks for more than the state. */
  private async apply(tx: Sql, target: NewsTarget, news: News, step: NewsMove): Promise<boolean> {
    const { source, actor, result } = news;
    const { providerRef, code } = result;
    const nextPollMs = step.to === 'submitted' ? this.pollMs : null;
    switch (step.rule) {
      case 'T8':
      case 'T9': {
        const to = step.rule === 'T9' ? 'succeeded' : 'submitted';
        const detail = { source, code };
        const accepted = { to, source, providerRef, actor, detail, nextPollMs } as const;
        if (await acceptWhileSubmitting(tx, target, accepted)) return true;
        break;
      }
      case 'T14':
      case 'T17': {
        const moved = await move(tx, {
          rule: step.rule,
          tenant: null,
          paymentId: target.id,
          to: step.to,
          actor,
          detail: { source, code },
          providerRef,
          nextActionInMs: nextPollMs,
          announce: 'wake',
        });
        if (moved.kind === 'moved') return true;
        break;
      }
      case 'T20': {
        const moved = await settleInReview(tx, {
          paymentId: target.id,
          to: step.to,
          source,
          code,
          providerRef,
          actor,
          nextActionInMs: nextPollMs,
        });
        return moved.kind === 'moved';
      }
    }
    throw new HeldRowMoved(target.id);
  }
}

/** A case for people, with the move (T16) from where an outcome is open. The payment's row is held. */
async function tellPeople(
  tx: Sql,
  of: {
    readonly paymentId: string;
    readonly state: PaymentState;
    readonly reason: string;
    readonly actor: string;
  },
): Promise<Told> {
  const { paymentId, state, reason, actor } = of;
  const stays = (kind: 'waits' | 'with_people' | 'contradicts'): Told => ({
    answer: { kind, state },
    from: null,
  });
  if (state !== 'submitting' && state !== 'submitted' && state !== 'unknown') {
    await openCase(tx, { paymentId, reason });
    return stays(state === 'needs_review' ? 'with_people' : 'contradicts');
  }
  const moved =
    state === 'submitting'
      ? await escalateBeforeCall(tx, { paymentId, reason, actor })
      : await escalateToReview(tx, { tenant: null, paymentId, reason, actor });
  if (moved === null) return stays('waits');
  if (moved.kind !== 'moved') throw new HeldRowMoved(paymentId);
  return { answer: { kind: 'moved', to: 'needs_review' }, from: state };
}

type NewsMove = Extract<NewsStep, { kind: 'move' }>;

/** `from` is where a move began; null when there was none. */
interface Told {
  readonly answer: NewsAnswer;
  readonly from: PaymentState | null;
}

/** A row that this transaction holds changed under it: a bug, and nothing of the transaction stands. */
class HeldRowMoved extends Error {
  constructor(paymentId: string) {
    super(`payment ${paymentId} moved although its row was held; nothing was recorded`);
  }
}
