import { monotonicMs } from '../../platform/clock.js';
import type { LookupAnswer, LookupPath, LookupRefs } from '../payment-provider.js';
import type { Exchange, SimulatedClient } from './simulated.client.js';
import { mapList, mapPage, mapPayouts, mapRead } from './simulated.mapping.js';
import type { Expected } from './simulated.mapping.js';
import { referenceOf } from './simulated.request.js';
import type { Payout } from './simulated.response.js';
import { isPayoutId } from './simulated.response.js';

/** A list scan begins this much before the first send: the provider's clock may be behind ours. */
const SCAN_MARGIN_MS = 5 * 60_000;
const PAGE_SIZE = 100;
/** 10,000 payouts. A longer scan would eat the room that the lane leaves for lookups. */
const MOST_PAGES = 100;

/** Asks the provider what exists there, by each of the ways that the descriptor declares. */
export class SimulatedLookup {
  constructor(
    private readonly client: SimulatedClient,
    private readonly paths: readonly LookupPath[],
  ) {}

  /** Any: by provider id when it is known, else by reference. Never throws. Twice: asked twice. */
  async lookup(refs: LookupRefs): Promise<LookupAnswer> {
    const { providerRef } = refs;
    const expected: Expected = { ...refs.expected, reference: referenceOf(refs), providerRef };
    const path = this.pathFor(refs);
    if (path === null) {
      return { kind: 'cannot_tell', code: this.paths.length === 0 ? 'no_lookup' : 'no_such_lookup' };
    }
    if (path === 'list_scan') return this.scan(refs, expected);
    if (path === 'provider_id') return this.read(providerRef ?? '', refs.deadlineMs, expected);
    const query = new URLSearchParams({ reference: expected.reference });
    return mapList(await this.get(`/v1/payouts?${query.toString()}`, refs.deadlineMs), expected);
  }

  private pathFor({ by, providerRef }: LookupRefs): LookupPath | null {
    const wanted: readonly LookupPath[] =
      by !== 'any' ? [by] : providerRef === null ? ['reference'] : ['provider_id', 'reference'];
    return wanted.find((path) => this.paths.includes(path)) ?? null;
  }

  private async read(providerRef: string, deadlineMs: number, expected: Expected): Promise<LookupAnswer> {
    if (!isPayoutId(providerRef)) return { kind: 'cannot_tell', code: 'provider_ref_unusable' };
    return mapRead(await this.get(`/v1/payouts/${providerRef}`, deadlineMs), expected);
  }

  /**
   * Goes through every payout since the first send and compares references here. `absent` only after
   * the last page: a scan that was cut short has seen nothing.
   */
  private async scan({ sentSince, deadlineMs }: LookupRefs, expected: Expected): Promise<LookupAnswer> {
    if (sentSince === null) return { kind: 'cannot_tell', code: 'first_send_unknown' };
    const from = String(Math.floor((sentSince.getTime() - SCAN_MARGIN_MS) / 1000));
    const endsAtMs = monotonicMs() + deadlineMs;
    const ours: Payout[] = [];
    let after: string | null = null;
    for (let page = 0; page < MOST_PAGES; page++) {
      const query = new URLSearchParams({ created_from: from, limit: String(PAGE_SIZE) });
      if (after !== null) query.set('starting_after', after);
      const exchange = await this.get(`/v1/payouts?${query.toString()}`, endsAtMs - monotonicMs());
      const read = mapPage(exchange);
      if (read.kind === 'cannot_tell') return read;
      ours.push(...read.payouts.filter(({ reference }) => reference === expected.reference));
      if (!read.hasMore) return mapPayouts(ours, 'list_scan', exchange, expected);
      const last = read.payouts.at(-1)?.id;
      if (last === undefined || last === after) return { kind: 'cannot_tell', code: 'list_does_not_advance' };
      after = last;
    }
    return { kind: 'cannot_tell', code: 'list_too_long' };
  }

  private get(path: string, deadlineMs: number): Promise<Exchange> {
    const mayWrite = (): boolean => true;
    return this.client.exchange({ method: 'GET', path, headers: {}, body: '', deadlineMs, mayWrite });
  }
}
