import type { Fault, WebhookFaultKind } from '../fault.js';
import type { FaultPlan } from '../fault-plan.js';
import { paymentIdOf } from '../payout-book.js';
import type { LedgerRecord, PayoutBook } from '../payout-book.js';
import { DeliveryLog } from './delivery-log.js';
import type { WebhookEndpoint } from './webhook-endpoint.js';
import { eventOf, newsOf } from './webhook-event.js';
import type { ProviderEvent } from './webhook-event.js';
import { firstShiftOf, strayOf } from './webhook-fault.js';
import { signatureHeaders } from './webhook-signature.js';

export interface WebhookSenderParts {
  readonly book: PayoutBook;
  readonly plan: FaultPlan;
  /** null: the account's events go nowhere. */
  readonly endpointOf: (account: string) => WebhookEndpoint | null;
  /** Calls back once the ledger is with the operating system. */
  readonly whenWritten: (callback: () => void) => void;
  /** Milliseconds before each repeat of a delivery that was not answered with 2xx. */
  readonly retryDelaysMs: readonly number[];
  /** The wall clock, epoch milliseconds. */
  readonly now: () => number;
  readonly virtualNow: () => number;
}

/** An event is normally on its way only when the call that caused it has its answer. */
const AFTER_ANSWER_MS = 50;
/** A receiver must have answered by then. */
const TIMEOUT_MS = 5_000;
/** An event that is held back goes out after this, also when no other has overtaken it. */
const LONGEST_HOLD_MS = 2_000;
const MOST_AT_ONCE = 64;
const DELIVERIES_KEPT = 100_000;

/** One event on its way. */
interface Post {
  readonly event: ProviderEvent;
  readonly reference: string;
  readonly fault: Fault;
}

/**
 * Tells clients what became of payouts. Events of one payment go one after the other; each is
 * repeated with growing pauses until it is answered with 2xx. Kept in memory: a kill loses what was
 * not delivered, as providers do at times.
 */
export class WebhookSender {
  readonly log = new DeliveryLog(DELIVERIES_KEPT);
  private events = new Map<string, Post[]>();
  private chains = new Map<string, Promise<void>>();
  private early = new Map<string, Promise<void>>();
  private overtakers = new Map<string, () => void>();
  private waiting: (() => void)[] = [];
  private underWay = 0;
  private pendingCount = 0;
  private abort = new AbortController();

  constructor(private readonly parts: WebhookSenderParts) {}

  /** Sends what the record is news of. */
  tell(record: LedgerRecord): void {
    const news = newsOf(record);
    if (!news) return;
    const payout = this.parts.book.required(news.payoutId);
    if (!this.parts.endpointOf(payout.account)) return;
    const { reference } = payout;
    const fault = this.parts.plan.next('webhook', reference);
    const post = { event: eventOf(payout, news.news, this.parts.virtualNow()), reference, fault };
    const paymentId = paymentIdOf(reference);
    this.events.set(paymentId, [...(this.events.get(paymentId) ?? []), post]);
    this.dispatch(post);
  }

  /** Lets the answer go once no event about the reference has to arrive before it. */
  beforeAnswer(reference: string, answer: () => void): void {
    const early = this.early.get(reference);
    if (early) void early.then(answer);
    else answer();
  }

  /** Sends all events of a payment once more, under their old ids. @returns how many. */
  redeliver(paymentId: string): number {
    const posts = this.events.get(paymentId) ?? [];
    for (const { event, reference } of posts) {
      this.dispatch({ event, reference, fault: this.parts.plan.next('webhook', reference) });
    }
    return posts.length;
  }

  /** Events that are not delivered yet and not given up. */
  get pending(): number {
    return this.pendingCount;
  }

  /** Forgets events, deliveries and repeats to come. */
  clear(): void {
    this.abort.abort();
    this.abort = new AbortController();
    this.events.clear();
    this.chains.clear();
    this.early.clear();
    this.overtakers.clear();
    this.log.clear();
  }

  private dispatch(post: Post): void {
    const { signal } = this.abort;
    const { reference, fault } = post;
    const paymentId = paymentIdOf(reference);
    this.pendingCount += 1;
    const sent = this.sendInTurn(post, this.chains.get(paymentId) ?? Promise.resolve(), signal);
    if (fault.kind === 'early') {
      const arrived = Promise.race([sent, pause(TIMEOUT_MS, signal)]);
      void keepUntilDone(this.early, reference, arrived);
    } else if (fault.kind !== 'reorder') {
      void keepUntilDone(this.chains, paymentId, sent);
    }
  }

  /** @param before the payment's earlier events. Never rejects. */
  private async sendInTurn(post: Post, before: Promise<void>, signal: AbortSignal): Promise<void> {
    const { kind, afterMs } = post.fault;
    const paymentId = paymentIdOf(post.reference);
    await new Promise<void>((resolve) => this.parts.whenWritten(resolve));
    if (kind !== 'early') await Promise.all([before, pause(AFTER_ANSWER_MS, signal)]);
    if (kind === 'reorder') await this.overtaken(paymentId, afterMs ?? LONGEST_HOLD_MS, signal);
    await this.deliver(post, signal);
    if (kind !== 'reorder') this.overtakers.get(paymentId)?.();
    this.pendingCount -= 1;
  }

  /** Waits until another event of the payment is delivered, or for so long. */
  private overtaken(paymentId: string, longestMs: number, signal: AbortSignal): Promise<void> {
    const overtaking = new Promise<void>((resolve) => {
      this.overtakers.set(paymentId, () => {
        this.overtakers.delete(paymentId);
        resolve();
      });
    });
    return Promise.race([overtaking, pause(longestMs, signal)]);
  }

  /** One event with its fault: what comes before it, the event, its repeats. Never rejects. */
  private async deliver(post: Post, signal: AbortSignal): Promise<void> {
    const { event, fault, reference } = post;
    const endpoint = this.parts.endpointOf(event.account);
    if (!endpoint || signal.aborted) return;
    if (fault.kind === 'drop') {
      this.log.add(this.entry(post, { event, stray: false, attempt: 0, error: 'dropped' }));
      return;
    }
    const stray = strayOf(fault, event, endpoint);
    if (stray) {
      const body = JSON.stringify({ ...stray.event, ...(stray.padding && { padding: stray.padding }) });
      const { event: other, endpoint: from } = stray;
      await this.post(
        { ...post, event: other, reference },
        from,
        { body, attempt: 1, stray: true, shiftS: 0 },
        signal,
      );
    }
    const copies = fault.kind === 'duplicate' ? fault.copies : 1;
    await Promise.all(Array.from({ length: copies }, () => this.untilAccepted(post, endpoint, signal)));
  }

  private async untilAccepted(post: Post, endpoint: WebhookEndpoint, signal: AbortSignal): Promise<void> {
    const body = JSON.stringify(post.event);
    const pauses = [0, ...this.parts.retryDelaysMs];
    for (const [index, pauseMs] of pauses.entries()) {
      if (pauseMs > 0) await pause(pauseMs, signal);
      if (signal.aborted) return;
      const shiftS = index === 0 ? firstShiftOf(post.fault) : 0;
      const how = { body, attempt: index + 1, stray: false, shiftS };
      if (await this.post(post, endpoint, how, signal)) return;
    }
  }

  /** One request. @returns whether it was answered with 2xx. */
  private async post(
    post: Post,
    endpoint: WebhookEndpoint,
    { body, attempt, stray, shiftS }: { body: string; attempt: number; stray: boolean; shiftS: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    await this.turn();
    const delivery = this.log.add(this.entry(post, { event: post.event, stray, attempt, error: null }));
    const timestamp = Math.floor(delivery.sentAt / 1000) + shiftS;
    try {
      const response = await fetch(endpoint.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'provider-simulator',
          ...signatureHeaders(endpoint, { eventId: post.event.id, timestamp, body }),
        },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      await response.arrayBuffer();
      delivery.httpStatus = response.status;
      return response.ok;
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      delivery.error =
        cause instanceof Error ? ('code' in cause ? String(cause.code) : cause.name) : 'failed';
      return false;
    } finally {
      this.underWay -= 1;
      this.waiting.shift()?.();
    }
  }

  /** Waits for a free place among the requests under way, and takes it. */
  private async turn(): Promise<void> {
    while (this.underWay >= MOST_AT_ONCE) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.underWay += 1;
  }

  private entry(
    { reference, fault }: Post,
    more: { event: ProviderEvent; stray: boolean; attempt: number; error: string | null },
  ): Parameters<DeliveryLog['add']>[0] {
    const { event, ...rest } = more;
    return {
      eventId: event.id,
      type: event.type,
      account: event.account,
      reference,
      fault: fault.kind as WebhookFaultKind,
      sentAt: this.parts.now(),
      httpStatus: null,
      ...rest,
    };
  }
}

/** Keeps the promise under its name until it is fulfilled, or another has taken the name. */
async function keepUntilDone(
  promises: Map<string, Promise<void>>,
  name: string,
  promise: Promise<void>,
): Promise<void> {
  promises.set(name, promise);
  await promise;
  if (promises.get(name) === promise) promises.delete(name);
}

/** Ends early, without an error, when the sender is cleared. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    signal.addEventListener('abort', end, { once: true });
  });
}
