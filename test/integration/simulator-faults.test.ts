import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../support/simulator.js';
import type { FaultInput, Simulator } from '../support/simulator.js';

/** The whole plan of faults against a process of its own; only its ledger says what was paid. */

/** Shorter than what the slow faults take, so that they end as lost answers. */
const GIVEN_UP_AFTER_MS = 500;

let simulator: Simulator;
let payments = 0;

beforeAll(async () => {
  simulator = await startSimulator();
});
afterAll(() => simulator.stop());

const newPayment = (): string => `pay_${payments++}`;

/** Asks for the payment under its own key. @returns the status; null when none came. */
async function pay(paymentId: string, bearer: string = simulator.apiKeys.A): Promise<number | null> {
  const body = { amount: 500, currency: 'EUR', destination: 'acct_dest', reference: `${paymentId}/1` };
  try {
    const response = await fetch(`${simulator.url}/v1/payouts`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        connection: 'close',
        'idempotency-key': `key-of-${paymentId}`,
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(GIVEN_UP_AFTER_MS),
      body: JSON.stringify(body),
    });
    await response.text();
    return response.status;
  } catch {
    return null;
  }
}

const BEFORE: readonly FaultInput[] = [
  'hang',
  'reset_before',
  'http_500_before',
  'http_502_html_before',
  'http_502_json_before',
  'http_404_json_before',
  'empty_200_before',
  'http_429',
  'http_401',
  'http_403',
  'http_409_in_use',
  'http_400_key_reused',
  'redirect_307',
];
const AFTER: readonly FaultInput[] = [
  'hang_after',
  'reset_after',
  'truncate_after',
  'http_500_after',
  'http_502_html_after',
  'http_502_json_after',
  'http_404_json_after',
  'empty_200_after',
  'broken_json_after',
  'unknown_status_after',
  'echo_error_after',
  'other_amount_after',
  'other_currency_after',
  'other_destination_after',
  'other_object_after',
  { kind: 'slow', afterMs: 600 },
  { kind: 'pending_then_final', afterMs: 10 },
  { kind: 'return_after', afterMs: 10 },
];
const title = (fault: FaultInput): string => (typeof fault === 'string' ? fault : fault.kind);

describe('DC-01: a repeat under the key after a fault', () => {
  it.each(BEFORE.map((fault) => [title(fault), fault] as const))(
    '%s has moved nothing, then pays once',
    async (_, fault) => {
      const paymentId = newPayment();
      await simulator.script(paymentId, 'submit', fault);
      await pay(paymentId);
      expect((await simulator.effects(paymentId)).count).toBe(0);
      await expect.poll(() => pay(paymentId)).toBe(200);
      expect((await simulator.effects(paymentId)).count).toBe(1);
    },
  );

  it.each(AFTER.map((fault) => [title(fault), fault] as const))(
    '%s has paid, and pays no second time',
    async (_, fault) => {
      const paymentId = newPayment();
      await simulator.script(paymentId, 'submit', fault);
      await pay(paymentId);
      expect((await simulator.effects(paymentId)).charges).toHaveLength(1);
      await expect.poll(() => pay(paymentId)).toBe(200);
      expect((await simulator.effects(paymentId)).charges).toHaveLength(1);
    },
  );

  it('F15: late_commit pays after a lookup has said absent', async () => {
    const paymentId = newPayment();
    await simulator.script(paymentId, 'submit', { kind: 'late_commit', afterMs: 1_000 });
    expect(await pay(paymentId)).toBeNull();
    expect((await simulator.effects(paymentId)).count).toBe(0);
    const listed = await fetch(`${simulator.url}/v1/payouts?reference=${paymentId}%2F1`, {
      headers: { authorization: `Bearer ${simulator.apiKeys.A}` },
    });
    expect(await listed.json()).toMatchObject({ data: [] });
    expect(await simulator.untilCharged(paymentId)).toHaveLength(1);
  });

  it.each(['C', 'D'] as const)(
    'in class %s it is a second payment, and the oracle names it',
    async (profile) => {
      const paymentId = newPayment();
      await simulator.script(paymentId, 'submit', 'reset_after');
      await pay(paymentId, simulator.apiKeys[profile]);
      await pay(paymentId, simulator.apiKeys[profile]);
      expect((await simulator.effects(paymentId)).count).toBe(2);
      expect((await simulator.allEffects()).duplicates).toContainEqual({ paymentId, count: 2 });
    },
  );
});

describe('F6: a kill of the process', () => {
  it('keeps clock, switches and endpoints, so that keys end and lookups lag as before', async () => {
    await simulator.switchAccount('acct_b', { keyLifeMs: 3_600_000 });
    await simulator.setWebhook({
      account: 'acct_b',
      url: 'http://127.0.0.1:1/',
      secrets: ['a-secret-of-a-test'],
    });
    const paymentId = newPayment();
    await pay(paymentId, simulator.apiKeys.B);
    await simulator.advanceClock(1_800_000);
    await simulator.restart();
    expect((await simulator.webhooks()).endpoints.map(({ account }) => account)).toEqual(['acct_b']);
    await pay(paymentId, simulator.apiKeys.B);
    expect((await simulator.effects(paymentId)).count).toBe(1);
    await simulator.advanceClock(1_800_000);
    await pay(paymentId, simulator.apiKeys.B);
    expect((await simulator.effects(paymentId)).count).toBe(2);
  });
});

describe('the seeded plan', () => {
  it('gives the same traffic the same faults in two processes, and another seed others', async () => {
    const faults = async (seed: number): Promise<readonly string[]> => {
      const other = await startSimulator();
      try {
        const kinds = [...BEFORE, ...AFTER]
          .map(title)
          .filter((kind) => !/hang|slow|pending|return/.test(kind));
        const submit = kinds.map((kind) => ({ kind, rate: 0.9 / kinds.length }));
        await other.plan({ random: { seed, rates: { submit } } });
        const body = { amount: 1, currency: 'EUR', destination: 'acct_dest' };
        for (let i = 0; i < 60; i += 1) {
          await fetch(`${other.url}/v1/payouts`, {
            method: 'POST',
            headers: {
              authorization: `Bearer ${other.apiKeys.A}`,
              'idempotency-key': `k${i}`,
              connection: 'close',
            },
            redirect: 'manual',
            body: JSON.stringify({ ...body, reference: `pay_${i % 20}/1` }),
          })
            .then((response) => response.text())
            .catch(() => null);
        }
        return (await other.requests()).map(({ fault }) => fault);
      } finally {
        await other.stop();
      }
    };
    const [first, second, third] = [await faults(1), await faults(1), await faults(2)];
    expect(first).toEqual(second);
    expect(first).not.toEqual(third);
    expect(new Set(first).size).toBeGreaterThan(10);
  });
});
