import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PaymentState } from '../../src/domain/payment-state.js';
import { eventBody, newEventId, newSecret, signed, found, WebhookRig } from '../support/webhook-rig.js';

let rig: WebhookRig;
beforeAll(async () => {
  rig = await WebhookRig.start();
});
afterAll(() => rig.stop());

const PAYMENTS = 300;
const DUPLICATES = 300;
const FORGED = 100;
const SENDERS = 24;

type End = 'succeeded' | 'failed';

interface Delivery {
  readonly body: string;
  readonly secret: string;
  readonly isForged: boolean;
}

/** Numbers from a seed, so that a failure can be had again. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function shuffle<T>(list: readonly T[], random: () => number): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [out[i], out[j]] = [out[j] as T, out[i] as T];
  }
  return out;
}

const BEGINNINGS: readonly PaymentState[] = ['submitted', 'unknown', 'submitting', 'needs_review'];

it('1,000 events, 30 % doubled, 30 % out of order, 10 % forged, at once, by two workers: no wrong move (P15)', async () => {
  const random = numbers(20_261_130);
  const ends = new Map<string, End>();
  const genuine: Delivery[] = [];
  const deliver = (body: string): Delivery => ({
    body,
    secret: random() < 0.5 ? rig.secrets.new : rig.secrets.old,
    isForged: false,
  });
  for (let n = 0; n < PAYMENTS; n++) {
    const begins = BEGINNINGS[n % BEGINNINGS.length] ?? 'submitted';
    // What is submitting can only be told accepted while its own call is under way.
    const end: End = begins !== 'submitting' && random() < 0.3 ? 'failed' : 'succeeded';
    const id = await rig.payment(begins);
    ends.set(id, end);
    // Every tenth lookup is behind its own event at first.
    let lags = random() < 0.1 ? 1 : 0;
    rig.a.ledger.set(id, () => found(id, lags-- > 0 ? 'pending' : end));
    const both = [deliver(eventBody(id, { status: 'pending' })), deliver(eventBody(id, { status: end }))];
    genuine.push(...(random() < 0.3 ? both.reverse() : both));
  }
  const doubled = Array.from({ length: DUPLICATES }, () => genuine[Math.floor(random() * genuine.length)] as Delivery);
  const ids = [...ends.keys()];
  const forged = Array.from({ length: FORGED }, (_, n): Delivery => {
    const id = ids[Math.floor(random() * ids.length)] ?? '';
    const lie = ends.get(id) === 'failed' ? 'succeeded' : 'failed';
    return { body: eventBody(id, { id: newEventId(), status: lie }), secret: n % 2 ? newSecret() : '', isForged: true };
  });
  const deliveries = [...genuine];
  for (const late of shuffle([...doubled, ...forged], random)) {
    deliveries.splice(Math.floor(random() * deliveries.length), 0, late);
  }
  expect(deliveries).toHaveLength(1_000);

  const workers = [rig.inbox().inbox, rig.inbox().inbox];
  for (const worker of workers) worker.start();
  const answers = new Map<string, number>();
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let d = deliveries[next++]; d; d = deliveries[next++]) {
      const headers = d.secret === '' ? {} : signed(d.body, d.secret);
      const { status } = await rig.post(d.body, headers);
      const key = `${d.isForged ? 'forged' : 'genuine'} ${status}`;
      answers.set(key, (answers.get(key) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
  expect(Object.fromEntries(answers)).toEqual({
    'forged 401': FORGED,
    'genuine 204': genuine.length + DUPLICATES,
  });
  const release = setInterval(() => void rig.makeDue(), 200);
  try {
    await rig.untilProcessed();
  } finally {
    clearInterval(release);
    for (const worker of workers) await worker.stop();
  }

  const states = await rig.db.query<{ id: string; state: string }>(`SELECT id, state FROM payment`);
  expect(states.filter(({ id, state }) => state !== ends.get(id))).toEqual([]);
  const [stored] = await rig.db.query<{ n: number }>(`SELECT count(*)::integer AS n FROM webhook_inbox`);
  expect(stored).toEqual({ n: genuine.length });
  const told = await rig.db.query<{ n: number }>(
    `SELECT count(*)::integer AS n FROM evidence WHERE source = 'webhook' GROUP BY payment_id HAVING count(*) <> 2`,
  );
  expect(told).toEqual([]);
  const moves = await rig.db.query<{ rules: string }>(
    `SELECT DISTINCT string_agg(detail::json ->> 'rule', ' ' ORDER BY seq) AS rules FROM payment_transition
      WHERE actor LIKE 'webhook:%' GROUP BY payment_id`,
  );
  const LEGAL = ['T17', 'T14', 'T9', 'T20', 'T14 T17', 'T8 T17'];
  expect(moves.map((row) => row.rules).filter((rules) => !LEGAL.includes(rules))).toEqual([]);
  expect(await rig.db.query(`SELECT 1 FROM review_case WHERE closed_at IS NULL`)).toEqual([]);
  expect(rig.faults).toEqual([]);
  expect(await rig.breaches()).toEqual([]);
}); // prettier-ignore
