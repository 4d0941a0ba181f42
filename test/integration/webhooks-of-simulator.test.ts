import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PaymentReturns } from '../../src/payments/payment-returns.service.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { ProviderNews } from '../../src/payments/provider-news.service.js';
import { registryOf, type ProviderRegistry } from '../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { ProcessEvent } from '../../src/webhooks/incoming/process-event.service.js';
import { WebhookInbox } from '../../src/webhooks/incoming/webhook-inbox.js';
import { startTestApi, testKeys, type TestApi } from '../support/api.js';
import { testCipher } from '../support/builders.js';
import { databaseCipher } from '../support/ciphers.js';
import { EngineRig, pair, type TestEngine } from '../support/engine.js';
import { until } from '../support/until.js';

const SECRET = 'whsec_a-secret-of-the-test';
const OLD_SECRET = 'whsec_an-older-secret-of-it';

let rig: EngineRig;
let api: TestApi;
let providers: ProviderRegistry;
let inbox: WebhookInbox;
/** Polls after 30 s and later: within a test only events bring news. */
let a: TestEngine;
let b: TestEngine;
let laneOfB: string;

beforeAll(async () => {
  rig = await EngineRig.start();
  const { url, apiKeys } = rig.simulator;
  providers = registryOf([
    new SimulatedProvider({ baseUrl: url, apiKey: apiKeys.A }),
    new SimulatedProvider({ baseUrl: url, apiKey: apiKeys.B, profile: 'B' }),
  ]);
  a = await rig.engine({ ladderDivisor: 1 });
  b = await rig.engine({ ladderDivisor: 1, provider: { profile: 'B', name: 'simulated_b' } });
  laneOfB = await rig.addLane({ provider: 'simulated_b' });
  const keys = testKeys();
  const secrets = { 'simulated/default': [SECRET, OLD_SECRET], 'simulated_b/default': [SECRET] };
  const env = { PAYMENTS_WEBHOOK_SECRETS: JSON.stringify(secrets) };
  api = await startTestApi({ database: rig.db.connect('api'), keys, providers, env });
  const to = (name: string): string => `${api.url}/v1/webhooks/${name}`;
  await rig.simulator.setWebhook({ account: 'acct_a', url: to('simulated'), secrets: [OLD_SECRET] });
  await rig.simulator.setWebhook({ account: 'acct_b', url: to('simulated_b'), secrets: [SECRET] });
  const sql = rig.db.connect('inbox');
  const sealed = databaseCipher(keys, sql);
  const processing = new ProcessEvent({
    sql,
    news: new ProviderNews(sql, 30_000),
    returns: new PaymentReturns(sql, { nudge: () => undefined }),
    cipher: {
      decrypt: (of) => sealed.decrypt(of),
      openDestination: (row) => testCipher.openDestination(row),
    },
  });
  inbox = new WebhookInbox({
    sql,
    providers: providers.names().flatMap((name) => providers.get(name) ?? []),
    process: (provider, event) => processing.process(provider, event),
    fault: (operation, error) => {
      throw new Error(`${operation}: ${String(error)}`);
    },
    pollMs: 10,
  });
  inbox.start();
});
afterAll(async () => {
  await inbox.stop();
  await api.close();
  await rig.stop();
});

const stateIs = (payment: PaymentRow, state: string) =>
  until(`${payment.id} is ${state}`, () => rig.state(payment.id), (found) => found === state); // prettier-ignore

/** Executes one payment that the provider ends by itself after a while. */
async function pay(on: TestEngine, webhook: readonly string[], final: 'succeeded' | 'failed', seed = {}) {
  const payment = await rig.pay(seed);
  const submit = [{ kind: 'pending_then_final', afterMs: 150, final }];
  await rig.simulator.plan({ scripts: [{ reference: payment.id, submit, webhook: [...webhook] }] });
  await Promise.all(Object.values(pair(on, payment)));
  return payment;
}

const TIMES = 4;
const FAULTS = [
  'none',
  'duplicate',
  'reorder',
  'early',
  'forged',
  'old',
  'future',
  'other_account',
  'unknown_reference',
  'unknown_type',
  'oversized',
];

describe('events that the simulated provider sends', () => {
  it.each(FAULTS)('(%s) bring the end of each payment, by lookup, and never another (F19)', async (fault) => {
    const ends = Array.from({ length: TIMES }, (_, n) =>
      n % 2 === 0 ? ('succeeded' as const) : ('failed' as const),
    );
    const payments = await Promise.all(ends.map((final) => pay(a, [fault, fault], final)));
    await Promise.all(payments.map((payment, n) => stateIs(payment, ends[n] ?? '')));
    for (const [n, payment] of payments.entries()) {
      const paid = ends[n] === 'succeeded' ? 1 : 0;
      expect([fault, (await rig.simulator.effects(payment.id)).count]).toEqual([fault, paid]);
      expect(await rig.openCases(payment.id)).toEqual([]);
      const sent = (await rig.simulator.requests(payment.id)).filter((r) => r.operation === 'submit');
      expect(sent).toHaveLength(1);
    }
  });

  it('are refused when forged, old, from the future or too large, and taken when they come again honestly', async () => {
    await until('all are delivered', () => rig.simulator.webhooks(), ({ pending }) => pending === 0); // prettier-ignore
    const deliveries = await rig.simulator.deliveries();
    const answers = (fault: string, stray: boolean): readonly (number | null)[] => [
      ...new Set(deliveries.filter((d) => d.fault === fault && d.stray === stray).map((d) => d.httpStatus)),
    ];
    expect(answers('forged', true)).toEqual([401]);
    expect(answers('oversized', true)).toEqual([413]);
    expect(answers('unknown_type', true)).toEqual([204]);
    expect(answers('unknown_reference', true)).toEqual([204]);
    expect([...answers('old', false)].sort()).toEqual([204, 401]);
    expect([...answers('future', false)].sort()).toEqual([204, 401]);
  });

  it('that never come leave the payment to its inquiry', async () => {
    const payment = await pay(a, ['drop', 'drop'], 'succeeded');
    await until('both are dropped', () => rig.simulator.deliveries(payment.id), (d) => d.length === 2); // prettier-ignore
    expect(await rig.state(payment.id)).toBe('submitted');
    await rig.makeDue(payment);
    await a.services.inquiry.inquire({ paymentId: payment.id });
    await stateIs(payment, 'succeeded');
  });

  it('end a payment of a provider that cannot be asked (class B; T17 by rule 9)', async () => {
    const seed = { provider: 'simulated_b', lane: laneOfB };
    for (const final of ['succeeded', 'failed'] as const) {
      const payment = await pay(b, ['duplicate', 'duplicate'], final, seed);
      await stateIs(payment, final);
      expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T8', 'T17']);
      const lookups = (await rig.simulator.requests(payment.id)).filter((r) => r.operation === 'lookup');
      expect(lookups).toEqual([]);
    }
  });

  it('of money that came back return the payment (T21, PR-01)', async () => {
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', { kind: 'return_after', afterMs: 300 });
    await Promise.all(Object.values(pair(a, payment)));
    await stateIs(payment, 'returned');
    expect((await rig.rules(payment.id)).at(-1)).toBe('T21');
  });

  it('sent again days later are known by their ids and change nothing (PR-02)', async () => {
    const payment = await pay(a, [], 'succeeded');
    await stateIs(payment, 'succeeded');
    await until('all are delivered', () => rig.simulator.webhooks(), ({ pending }) => pending === 0); // prettier-ignore
    const count = async (): Promise<unknown> =>
      (await rig.db.query(`SELECT count(*)::integer AS n FROM webhook_inbox`))[0];
    const before = await count();
    expect(await rig.simulator.redeliver(payment.id)).toBe(2);
    await until('they came again', () => rig.simulator.deliveries(payment.id), (d) => d.length >= 4); // prettier-ignore
    await until('all are delivered', () => rig.simulator.webhooks(), ({ pending }) => pending === 0); // prettier-ignore
    expect(await count()).toEqual(before);
  });

  it('leave nothing that the judge of all rows finds wrong', async () => {
    expect(await rig.breaches()).toEqual([]);
  });
});
