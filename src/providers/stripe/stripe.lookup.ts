import type Stripe from 'stripe';
import { monotonicMs } from '../../platform/clock.js';
import type { LookupAnswer, LookupPath, LookupRefs } from '../payment-provider.js';
import type { StripeClient, StripeExchange } from './stripe.client.js';
import { entriesOf, mapEntries, mapPage, mapRead } from './stripe.mapping.js';
import type { Expected } from './stripe.verdict.js';
import { idOf, isIdOf } from './stripe.object.js';
import type { StripeResource } from './stripe.object.js';

/** A list scan begins this much before the first send: Stripe's clock may be behind ours. */
const SCAN_MARGIN_MS = 5 * 60_000;
const PAGE_SIZE = 100;
/** 5,000 objects. A longer scan would eat the room that the lane leaves for lookups. */
const MOST_PAGES = 50;

/** The ways to ask, best first. PaymentIntents have no filter by reference; search lags and proves nothing. */
export const LOOKUP_PATHS: Readonly<Record<StripeResource, readonly LookupPath[]>> = {
  transfer: ['provider_id', 'reference', 'list_scan'],
  payment_intent: ['provider_id', 'list_scan'],
};

type List = (stripe: Stripe, page: Stripe.PaginationParams) => Promise<unknown>;

/** Asks Stripe what exists there. */
export class StripeLookup {
  constructor(
    private readonly client: StripeClient,
    private readonly resource: StripeResource,
    private readonly livemode: boolean,
  ) {}

  /** Any: by id when it is known, else by the best way there is. Never throws. Twice: asked twice. */
  async lookup(refs: LookupRefs): Promise<LookupAnswer> {
    const expected: Expected = {
      ...refs,
      resource: this.resource,
      livemode: this.livemode,
      money: refs.expected,
    };
    switch (this.pathFor(refs)) {
      case 'provider_id':
        return this.read(refs.providerRef ?? '', refs.deadlineMs, expected);
      case 'reference':
        return this.byGroup(refs, expected);
      case 'list_scan':
        return this.scan(refs, expected);
      case 'key':
      case null:
        return { kind: 'cannot_tell', code: 'no_such_lookup' };
    }
  }

  private pathFor({ by, providerRef }: LookupRefs): LookupPath | null {
    const paths = LOOKUP_PATHS[this.resource];
    if (by !== 'any') return paths.includes(by) ? by : null;
    return paths.find((path) => path !== 'provider_id' || providerRef !== null) ?? null;
  }

  /** By id. Never throws. Twice: asked twice. */
  async read(id: string, deadlineMs: number, expected: Expected): Promise<LookupAnswer> {
    if (!isIdOf(this.resource, id)) return { kind: 'cannot_tell', code: 'provider_ref_unusable' };
    const exchange = await this.ask(deadlineMs, (stripe) =>
      this.resource === 'transfer' ? stripe.transfers.retrieve(id) : stripe.paymentIntents.retrieve(id),
    );
    return mapRead(exchange, expected);
  }

  /** Every transfer in the group counts, whatever its metadata says: the group is this payment's. */
  private async byGroup({ paymentId, deadlineMs }: LookupRefs, expected: Expected): Promise<LookupAnswer> {
    const exchange = await this.ask(deadlineMs, (stripe) =>
      stripe.transfers.list({ transfer_group: paymentId, limit: PAGE_SIZE }),
    );
    const page = mapPage(exchange, expected);
    if (page.kind === 'cannot_tell') return page;
    if (page.hasMore) return { kind: 'found_many', count: page.data.length };
    return mapEntries(page.data, 'reference', exchange, expected);
  }

  /**
   * Goes through every object since the first send and compares metadata here. `absent` only after the
   * last page: a scan that was cut short has seen nothing.
   */
  private async scan(refs: LookupRefs, expected: Expected): Promise<LookupAnswer> {
    const { sentSince, deadlineMs, paymentId } = refs;
    if (sentSince === null) return { kind: 'cannot_tell', code: 'first_send_unknown' };
    const list = this.listSince(sentSince, refs.expected.destination);
    const endsAtMs = monotonicMs() + deadlineMs;
    const ours: unknown[] = [];
    let after: string | null = null;
    for (let count = 0; count < MOST_PAGES; count++) {
      const position: Stripe.PaginationParams = {
        limit: PAGE_SIZE,
        ...(after !== null && { starting_after: after }),
      };
      const exchange = await this.ask(endsAtMs - monotonicMs(), (stripe) => list(stripe, position));
      const page = mapPage(exchange, expected);
      if (page.kind === 'cannot_tell') return page;
      ours.push(...entriesOf(page.data, paymentId));
      if (!page.hasMore) return mapEntries(ours, 'list_scan', exchange, expected);
      const last = idOf(page.data.at(-1));
      if (last === null || last === after) return { kind: 'cannot_tell', code: 'list_does_not_advance' };
      after = last;
    }
    return { kind: 'cannot_tell', code: 'list_too_long' };
  }

  /** By destination or customer where there is one: a filter that does not depend on our own reference. */
  private listSince(sentSince: Date, destination: string): List {
    const created = { gte: Math.floor((sentSince.getTime() - SCAN_MARGIN_MS) / 1000) };
    if (this.resource === 'transfer')
      return (stripe, page) => stripe.transfers.list({ destination, created, ...page });
    const [customer, method] = destination.split(':');
    const filter = method === undefined ? {} : { customer };
    return (stripe, page) => stripe.paymentIntents.list({ ...filter, created, ...page });
  }

  private ask(deadlineMs: number, request: (stripe: Stripe) => Promise<unknown>): Promise<StripeExchange> {
    return this.client.exchange(request, { deadlineMs, mayWrite: () => true });
  }
}
