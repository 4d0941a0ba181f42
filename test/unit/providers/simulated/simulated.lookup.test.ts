import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { LookupAnswer, LookupRefs } from '../../../../src/providers/payment-provider.js';
import { SimulatedProvider } from '../../../../src/providers/simulated/simulated.adapter.js';
import type { SimulatedProfile } from '../../../../src/providers/simulated/simulated.descriptor.js';

const SENT = new Date('2026-11-30T10:00:00.900Z');
const REFS: LookupRefs = {
  providerRef: null,
  providerKey: '0d3f3c6e-0000-5000-8000-000000000001',
  paymentId: 'pay_a',
  generation: 1,
  sentSince: SENT,
  by: 'any',
  deadlineMs: 10_000,
  expected: { amountMinor: 1250n, currency: 'EUR', destination: 'acct_dest' },
};

function payout(no: number, reference: string, changes: object = {}): object {
  const id = `po_${String(no).padStart(12, '0')}`;
  const money = { amount: 1250, currency: 'EUR', destination: 'acct_dest' };
  const rest = { object: 'payout', livemode: false, status: 'succeeded', failure_code: null };
  return { id, reference, ...money, ...rest, ...changes };
}
const pageOf = (data: object[], hasMore: boolean): object => ({ object: 'list', data, has_more: hasMore });

const open: { close: () => unknown }[] = [];
afterEach(() => {
  for (const thing of open.splice(0)) thing.close();
});

/** A provider whose answers are given by the path asked for, and what it was asked. */
async function answering(
  answer: (url: URL) => object | null,
  profile: SimulatedProfile = 'A',
): Promise<{ readonly provider: SimulatedProvider; readonly asked: string[] }> {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(request.url ?? '');
    const body = answer(new URL(request.url ?? '', 'http://provider'));
    // null: never answers.
    if (body) response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const provider = new SimulatedProvider({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'sk_a', profile });
  open.push(provider, { close: () => (server.closeAllConnections(), server.close()) });
  return { provider, asked };
}

/** A list of payouts of others, in pages, with ours among them or not. */
function pages(count: number, ours: readonly object[]): (url: URL) => object {
  const all = [...Array.from({ length: count }, (_, i) => payout(i, `pay_other/${i + 1}`)), ...ours];
  return (url) => {
    const after = url.searchParams.get('starting_after');
    const limit = Number(url.searchParams.get('limit'));
    const from = after === null ? 0 : all.findIndex((one) => (one as { id: string }).id === after) + 1;
    return pageOf(all.slice(from, from + limit), from + limit < all.length);
  };
}
const scan = (provider: SimulatedProvider, changes: Partial<LookupRefs> = {}): Promise<LookupAnswer> =>
  provider.lookup({ ...REFS, by: 'list_scan', ...changes });

describe('which way a lookup takes', () => {
  it('by id when it is known, by reference else, and the way that was asked for', async () => {
    const { provider, asked } = await answering(() => pageOf([], false));
    const providerRef = 'po_0123456789';
    await provider.lookup(REFS);
    await provider.lookup({ ...REFS, providerRef });
    await provider.lookup({ ...REFS, providerRef, by: 'reference' });
    await provider.lookup({ ...REFS, by: 'list_scan' });
    const from = Date.parse('2026-11-30T09:55:00Z') / 1000;
    expect(asked).toEqual([
      '/v1/payouts?reference=pay_a%2F1',
      '/v1/payouts/po_0123456789',
      '/v1/payouts?reference=pay_a%2F1',
      `/v1/payouts?created_from=${from}&limit=100`,
    ]);
  });

  it.each<SimulatedProfile>(['B', 'D'])(
    'profile %s has none: it cannot tell, and nobody is asked',
    async (profile) => {
      const { provider, asked } = await answering(() => pageOf([], false), profile);
      for (const by of ['any', 'reference', 'list_scan'] as const) {
        expect(await provider.lookup({ ...REFS, by, providerRef: 'po_0123456789' })).toEqual({
          kind: 'cannot_tell',
          code: 'no_lookup',
        });
      }
      expect(asked).toEqual([]);
    },
  );

  it('a way that the descriptor lacks is never answered by another way', async () => {
    const { provider } = await answering(() => pageOf([], false));
    const limited = new SimulatedProvider({
      baseUrl: provider.prepare({ ...PAYMENT }).baseUrl,
      apiKey: 'sk_a',
      descriptor: { lookup: { by: ['reference'], consistency: 'strong' } },
    });
    open.push(limited);
    expect(await scan(limited)).toEqual({ kind: 'cannot_tell', code: 'no_such_lookup' });
    expect(await limited.lookup({ ...REFS, providerRef: 'po_0123456789' })).toEqual({
      kind: 'absent',
      by: ['reference'],
    });
  });
});

const PAYMENT = {
  paymentId: 'pay_a',
  generation: 1,
  providerKey: REFS.providerKey,
  ...REFS.expected,
  reference: null,
  description: null,
};

describe('a scan of the list', () => {
  it('finds our payout among others, however many pages it takes', async () => {
    const { provider, asked } = await answering(pages(250, [payout(900, 'pay_a/1')]));
    expect(await scan(provider)).toMatchObject({ kind: 'found', result: { providerRef: 'po_000000000900' } });
    expect(asked).toHaveLength(3);
  });

  it('UO-02: says absent only after the last page', async () => {
    const { provider } = await answering(pages(250, []));
    expect(await scan(provider)).toEqual({ kind: 'absent', by: ['list_scan'] });
  });

  it.each<[string, (url: URL) => object]>([
    ['more than 10,000 payouts', pages(10_001, [])],
    ['a page that says there is more and shows nothing', () => pageOf([], true)],
    ['a provider that shows the same page for ever', () => pageOf([payout(1, 'pay_b/1')], true)],
    ['a page that is none', () => ({ object: 'list' })],
  ])('cannot tell where it was cut short: %s', async (_title, answer) => {
    const { provider } = await answering(answer);
    expect((await scan(provider)).kind).toBe('cannot_tell');
  });

  it('cannot tell when its deadline passes between two pages', async () => {
    const { provider } = await answering((url) =>
      url.searchParams.has('starting_after') ? null : pageOf([payout(1, 'pay_b/1')], true),
    );
    expect(await scan(provider, { deadlineMs: 200 })).toEqual({ kind: 'cannot_tell', code: 'deadline' });
  });

  it('needs to know since when', async () => {
    const { provider, asked } = await answering(pages(1, []));
    expect(await scan(provider, { sentSince: null })).toEqual({
      kind: 'cannot_tell',
      code: 'first_send_unknown',
    });
    expect(asked).toEqual([]);
  });

  it('finds two of ours as many, another amount as another, another generation not at all', async () => {
    const two = await answering(pages(0, [payout(1, 'pay_a/1'), payout(2, 'pay_a/1')]));
    expect(await scan(two.provider)).toEqual({ kind: 'found_many', count: 2 });
    const other = await answering(pages(0, [payout(1, 'pay_a/1', { amount: 1251 })]));
    expect((await scan(other.provider)).kind).toBe('found_other');
    const later = await answering(pages(0, [payout(1, 'pay_a/2')]));
    expect((await scan(later.provider)).kind).toBe('absent');
  });
});
