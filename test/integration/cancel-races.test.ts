import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GUARDS, move } from '../../src/payments/gate.js';
import { startTestApi, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { step } from '../support/payment-states.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const due = async (): Promise<string> => (await client.create({ execute_at: 'now' })).body.id as string;
const cancel = (id: string): Promise<ApiAnswer> => client.post(`/v1/payments/${id}/cancel`);
/** Submission start as a worker asks for it: guarded by the database's clock. */
const begin = async (id: string): Promise<boolean> =>
  (await step(db.database, id, {
    rule: 'T7',
    guard: GUARDS.DUE_NOW,
    set: ', submission_started_at = clock_timestamp()',
  })) !== null;

/** Runs so many rounds, ten at a time. */
async function rounds(count: number, round: (no: number) => Promise<void>): Promise<void> {
  const AT_ONCE = 10;
  for (let first = 0; first < count; first += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => round(first + i)));
  }
}

interface Entry {
  readonly to_state: string;
  readonly cause: string;
}
const historyOf = (id: string): Promise<Entry[]> =>
  db.query<Entry>('SELECT to_state, cause FROM payment_transition WHERE payment_id = $1 ORDER BY seq', [id]);

describe('cancel against submission start', () => {
  it('lets one of them win, and the answer tells which, 200 times (CX-01)', async () => {
    const wins = { cancel: 0, start: 0 };
    // A cancel comes by HTTP, a start does not: whoever won last gives the other a little more time.
    let headStartMs = 0;
    const late = async (id: string): Promise<boolean> => {
      await new Promise((resolve) => setTimeout(resolve, headStartMs));
      return begin(id);
    };
    await rounds(200, async (round) => {
      const id = await due();
      const contenders = [() => cancel(id), () => late(id), () => cancel(id), () => late(id)];
      // Who is first on the wire alternates, so that both sides get to win.
      if (round % 2 === 1) contenders.reverse();
      const results = await Promise.all(contenders.map((contend) => contend()));
      const cancels = results.filter((r): r is ApiAnswer => typeof r !== 'boolean');
      const starts = results.filter((r) => r === true).length;
      const states = (await historyOf(id)).map((t) => t.to_state);
      if (starts === 1) {
        wins.start++;
        headStartMs += 1;
        expect(states).toEqual(['scheduled', 'submitting']);
        for (const { status, body } of cancels) {
          expect([status, body.code, body.state]).toEqual([409, 'submission_started', 'submitting']);
        }
      } else {
        wins.cancel++;
        headStartMs = Math.max(0, headStartMs - 1);
        expect(starts).toBe(0);
        expect(states).toEqual(['scheduled', 'cancelled']);
        for (const { status, body } of cancels) expect([status, body.state]).toEqual([200, 'cancelled']);
      }
    });
    // A race that only one side ever wins proves nothing.
    expect(wins.cancel).toBeGreaterThan(0);
    expect(wins.start).toBeGreaterThan(0);
  });

  it('waits for a start in flight and then answers by its end', async () => {
    for (const end of ['COMMIT', 'ROLLBACK'] as const) {
      const id = await due();
      const answer = await db.database
        .transaction(async (tx) => {
          const started = await step(tx, id, {
            rule: 'T7',
            set: ', submission_started_at = clock_timestamp()',
          });
          expect(started).toBe(2);
          const sent = cancel(id);
          await expect
            .poll(async () => (await db.query('SELECT 1 FROM pg_locks WHERE NOT granted')).length)
            .toBeGreaterThan(0);
          if (end === 'ROLLBACK') throw new Abandoned(sent);
          return { sent };
        })
        .catch((error: unknown) => {
          if (error instanceof Abandoned) return { sent: error.sent };
          throw error;
        });
      const { status, body } = await answer.sent;
      if (end === 'COMMIT') expect([status, body.code]).toEqual([409, 'submission_started']);
      else expect([status, body.state]).toEqual([200, 'cancelled']);
    }
  });
});

/** Ends a transaction by a rollback and hands on the cancel that waits for it. */
class Abandoned extends Error {
  constructor(readonly sent: Promise<ApiAnswer>) {
    super('rolled back on purpose');
  }
}

describe('cancel against others', () => {
  it('twice at once is one transition and twice 200 (CX-01)', async () => {
    for (let round = 0; round < 20; round++) {
      const id = (await client.create()).body.id as string;
      const answers = await Promise.all([cancel(id), cancel(id), cancel(id)]);
      expect(answers.map((a) => [a.status, a.body.state, a.body.version])).toEqual(
        answers.map(() => [200, 'cancelled', 2]),
      );
      expect(await historyOf(id)).toHaveLength(2);
    }
  });

  it('and reschedule at once: cancel holds, reschedule is 200 before it or 409 after it', async () => {
    for (let round = 0; round < 20; round++) {
      const id = (await client.create()).body.id as string;
      const [rescheduled, cancelled] = await Promise.all([
        client.post(`/v1/payments/${id}/reschedule`, {
          headers: { 'if-match': '"v1"' },
          body: { execute_at: new Date(Date.now() + 7_200_000).toISOString() },
        }),
        cancel(id),
      ]);
      expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled']);
      if (rescheduled.status !== 200) {
        expect([rescheduled.status, rescheduled.body.code]).toEqual([409, 'payment_final']);
      }
      const states = (await historyOf(id)).map((t) => t.to_state);
      expect(states).toEqual(
        rescheduled.status === 200 ? ['scheduled', 'scheduled', 'cancelled'] : ['scheduled', 'cancelled'],
      );
    }
  });

  it('and expiry at once is 200 either way, with one end', async () => {
    await rounds(20, async () => {
      const { body } = await client.create({
        execute_at: 'now',
        not_after: new Date(Date.now() + 400).toISOString(),
      });
      const id = body.id as string;
      await expect
        .poll(
          async () =>
            (await db.query('SELECT 1 FROM payment WHERE id = $1 AND not_after < clock_timestamp()', [id]))
              .length,
          { interval: 10, timeout: 10_000 },
        )
        .toBe(1);
      const [answer] = await Promise.all([
        cancel(id),
        move(db.database, { rule: 'T6', tenant: null, paymentId: id, actor: 'sweep', announce: 'wake' }),
      ]);
      const states = (await historyOf(id)).map((t) => t.to_state);
      expect(states).toHaveLength(2);
      expect([answer.status, answer.body.state]).toEqual([200, states[1]]);
    });
  });
});

describe('cancel after a restore', () => {
  it('of a payment that was due is 503 recovery_hold; of one that was not it is 200', async () => {
    const [dueOne, later] = [await due(), (await client.create()).body.id as string];
    await db.query(`INSERT INTO setting (name, value) VALUES ('recovery_hold', 'on')`);
    try {
      const refused = await cancel(dueOne);
      expect([refused.status, refused.body.code, refused.body.state]).toEqual([
        503,
        'recovery_hold',
        'scheduled',
      ]);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect((await cancel(later)).status).toBe(200);
      expect(await historyOf(dueOne)).toHaveLength(1);
    } finally {
      await db.query(`DELETE FROM setting WHERE name = 'recovery_hold'`);
    }
    expect((await cancel(dueOne)).status).toBe(200);
  });
});

describe('a cancelled payment', () => {
  it('has its transition and wakes its workflow once', async () => {
    const nudges = api.nudges();
    const { body } = await client.create();
    await cancel(body.id);
    await cancel(body.id);
    expect(await historyOf(body.id)).toEqual([
      { to_state: 'scheduled', cause: 'create' },
      { to_state: 'cancelled', cause: 'cancel' },
    ]);
    expect(await db.query('SELECT kind FROM outbox WHERE payment_id = $1 ORDER BY id', [body.id])).toEqual([
      { kind: 'start' },
      { kind: 'cancel' },
    ]);
    expect(api.nudges()).toBe(nudges + 2);
  });
});
