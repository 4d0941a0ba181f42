import pg from 'pg';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { admissionLimitsFor } from '../../src/http/admission-queue.js';
import { startTestApi, validCreate, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/until.js';

const POOL = 5;
const LIMITS = admissionLimitsFor(POOL);
/** Creates that run or wait; the next one is turned away. */
const CAPACITY = LIMITS.running.work + LIMITS.waiting.work;
const CREATES = Math.ceil(2.5 * CAPACITY);
/** Creates wait for this advisory lock, cancels do not. */
const DAM = 4_711;

let db: TestDatabase;
let api: TestApi;
let client: Client;
/** As many connections as there are calls, so that none waits at this end. */
const agent = new Agent({ connections: 2 * CREATES });

beforeAll(async () => {
  db = await createTestDatabase();
  await db.query(`CREATE FUNCTION wait_at_dam() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock_shared(${DAM}); RETURN NEW; END $$`);
  await db.query('CREATE TRIGGER dam BEFORE INSERT ON payment FOR EACH ROW EXECUTE FUNCTION wait_at_dam()');
  api = await startTestApi({
    database: db.as('payments_api', 'api', POOL),
    env: { PAYMENTS_DATABASE_POOL: String(POOL) },
  });
  client = await api.client();
  await client.create();
});
afterAll(async () => {
  await agent.close();
  await api.close();
  await db.drop();
});

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly id: string | undefined;
  readonly retryAfter: unknown;
}

async function send(method: 'GET' | 'POST', path: string, key?: string): Promise<Answer> {
  const { statusCode, headers, body } = await request(api.url + path, {
    method,
    dispatcher: agent,
    headers: {
      authorization: `Bearer ${client.key}`,
      ...(key === undefined ? {} : { 'idempotency-key': key, 'content-type': 'application/json' }),
    },
    body: key === undefined ? null : JSON.stringify(validCreate()),
  });
  const { code, id } = (await body.json()) as { code?: string; id?: string };
  return { status: statusCode, code, id, retryAfter: headers['retry-after'] };
}

async function paymentsToCancel(count: number): Promise<readonly string[]> {
  const made: string[] = [];
  for (let i = 0; i < count; i++) made.push((await client.create()).body.id as string);
  return made;
}

/** Nothing that was accepted is lost, and nothing that was turned away is stored. */
async function expectExactly(prefix: string, answers: readonly Answer[]): Promise<void> {
  const rows = await db.query<{ id: string }>(
    `SELECT id FROM payment WHERE tenant_id = $1 AND starts_with(idempotency_key, $2)`,
    [client.tenant, prefix],
  );
  const accepted = answers.filter(({ status }) => status === 201).map(({ id }) => id);
  expect(rows.map(({ id }) => id).sort()).toEqual(accepted.sort());
}

describe('creates at 2.5 times what the API can hold', () => {
  it('are turned away beyond it with 503 and Retry-After, while cancels and reads are answered', async () => {
    const victims = await paymentsToCancel(10);
    const holder = new pg.Client({ connectionString: db.url });
    await holder.connect();
    await holder.query(`SELECT pg_advisory_lock(${DAM})`);
    const prefix = unique('dam');
    const answers: Answer[] = [];
    const creates = Array.from({ length: CREATES }, async (_, i) => {
      answers.push(await send('POST', '/v1/payments', `${prefix}-${i}`));
    });
    try {
      await until(
        'the refusals',
        () => answers.length,
        (count) => count >= CREATES - CAPACITY,
      );
      const refused = [...answers];
      for (const { status, code, retryAfter } of refused) {
        expect([status, code]).toEqual([503, 'overloaded']);
        expect(retryAfter).toMatch(/^[1-9]\d*$/);
      }
      const cancels = await Promise.all(victims.map((id) => send('POST', `/v1/payments/${id}/cancel`)));
      expect(cancels.map(({ status }) => status)).toEqual(victims.map(() => 200));
      const reads = await Promise.all(victims.map((id) => send('GET', `/v1/payments/${id}`)));
      expect(reads.map(({ status }) => status)).toEqual(victims.map(() => 200));
      // They overtook every create that runs or waits.
      expect(answers.filter(({ status }) => status === 201)).toEqual([]);
    } finally {
      await holder.end();
    }
    await Promise.all(creates);
    // Whoever waited too long at the dam or for a turn is told to repeat.
    const known = new Set([201, 409, 503]);
    expect(answers.filter(({ status }) => !known.has(status))).toEqual([]);
    expect(answers.filter(({ status, retryAfter }) => status !== 201 && retryAfter === undefined)).toEqual(
      [],
    );
    await expectExactly(prefix, answers);
  });

  it('let a cancel overtake the queue: few creates end between its send and its answer', async () => {
    const victims = await paymentsToCancel(20);
    const prefix = unique('flood');
    const answers: Answer[] = [];
    let sent = 0;
    const flood = Array.from({ length: CREATES }, async () => {
      while (sent < 5 * CREATES) answers.push(await send('POST', '/v1/payments', `${prefix}-${sent++}`));
    });
    const overtaken: number[] = [];
    const accepted = (): number => answers.filter(({ status }) => status === 201).length;
    for (const id of victims) {
      const before = accepted();
      const cancel = await send('POST', `/v1/payments/${id}/cancel`);
      expect(cancel.status).toBe(200);
      overtaken.push(accepted() - before);
    }
    await Promise.all(flood);
    expect(Math.max(...overtaken)).toBeLessThan(CAPACITY / 2);
    expect(accepted()).toBeGreaterThan(0);
    await expectExactly(prefix, answers);
  });

  it('leave no place taken behind: afterwards everything is answered at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: CAPACITY }, (_, i) => send('POST', '/v1/payments', `${unique('after')}-${i}`)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  });
});

describe('a request that is turned away', () => {
  it('costs no look at its credential', async () => {
    const holder = new pg.Client({ connectionString: db.url });
    await holder.connect();
    await holder.query(`SELECT pg_advisory_lock(${DAM})`);
    const answers: Answer[] = [];
    const prefix = unique('dam');
    const creates = Array.from({ length: CAPACITY + 1 }, async (_, i) => {
      answers.push(await send('POST', '/v1/payments', `${prefix}-${i}`));
    });
    try {
      await until(
        'the queue',
        () => answers.length,
        (count) => count >= 1,
      );
      const stranger = await api.as('ps_test_nobody').create();
      expect([stranger.status, stranger.body.code]).toEqual([503, 'overloaded']);
    } finally {
      await holder.end();
    }
    await Promise.all(creates);
  });
});
