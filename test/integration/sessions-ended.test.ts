import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvariantJob } from '../../src/invariants/invariant-job.js';
import { OutboxRelay } from '../../src/outbox/outbox-relay.js';
import { createLogger } from '../../src/platform/logger.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { startTestApi, validCreate, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { EngineRig, live, type TestEngine } from '../support/engine.js';
import { FakeStarter } from '../support/fake-starter.js';
import { RecordedEvents } from '../support/recorded-events.js';
import { until } from '../support/until.js';

/** Every pool of the product at work on one database whose sessions are ended again and again. */

let rig: EngineRig;
let one: TestEngine;
let api: TestApi;
let client: Client;
const starter = new FakeStarter();
const relayed = new RecordedEvents();
let relay: OutboxRelay;
let invariants: InvariantJob;

beforeAll(async () => {
  rig = await EngineRig.start();
  one = await rig.engine();
  api = await startTestApi({ database: rig.db.database });
  client = await api.client();
  relay = new OutboxRelay(rig.db.as('payments_relay', 'relay'), starter, relayed.sink);
  relay.start();
  const log = createLogger({ level: 'error', name: 'test', destination: { write: () => undefined } });
  invariants = new InvariantJob({ url: rig.db.urlOf('payments_read'), log });
});
afterAll(async () => {
  await relay.stop();
  await invariants.stop();
  await api.close();
  await rig.stop();
});

const ROUNDS = 25;
const CLIENTS = 6;
const PAYMENTS = 60;
const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms));
const FAULTS = /^(StorageUnavailable|OutcomeUnknown|LockTimeout|ArmedAborted)$/;

/** Ends every session but the test's own, in whatever it is. @returns how many were in a transaction. */
async function endAll(): Promise<{ readonly all: number; readonly inTransaction: number }> {
  const rows = await rig.db.query<{ busy: boolean }>(
    `SELECT pg_terminate_backend(pid), state <> 'idle' AS busy FROM pg_stat_activity
      WHERE datname = current_database() AND application_name <> 'test-query'`,
  );
  return { all: rows.length, inTransaction: rows.filter((row) => row.busy).length };
}

/** Repeats until the answer is no 503; a status outside `allowed` fails the test. */
async function insist(call: () => Promise<ApiAnswer>, allowed: readonly number[]): Promise<ApiAnswer> {
  for (;;) {
    const answer = await call();
    if (answer.status !== 503) {
      expect(allowed, answer.text).toContain(answer.status);
      return answer;
    }
    expect(answer.body.retryable).toBe(true);
    refused++;
    await pause(10);
  }
}
/** 503 that clients met; faults that a worker's activities met. */
let refused = 0;
let workerFaults = 0;

describe('sessions that the server ends, idle and in a transaction, under load', () => {
  it('cost 503 and repeats, and lose or double nothing: creates, cancels, submissions, outbox (PG-01)', async () => {
    const payments = await rig.payMany(PAYMENTS, 1_500);
    await rig.expectNotBefore(payments);
    const ends = Promise.all(
      payments.map(async (payment) => {
        for (;;) {
          try {
            return await live(one, payment);
          } catch (error) {
            if (!FAULTS.test((error as Error).constructor.name)) throw error;
            workerFaults++;
            await pause(50);
          }
        }
      }),
    );
    ends.catch(() => undefined);
    let isOver = false;
    const ids = new Map<string, string>();
    const cancelled: string[] = [];
    const calling = Promise.all(
      Array.from({ length: CLIENTS }, async (_, c) => {
        for (let n = 0; !isOver; n++) {
          const key = `client-${c}-${n}`;
          const body = validCreate();
          const made = await insist(
            () => client.post('/v1/payments', { headers: { 'idempotency-key': key }, body }),
            [200, 201],
          );
          ids.set(key, made.body.id as string);
          if (n % 2 === 1) continue;
          await insist(() => client.post(`/v1/payments/${made.body.id}/cancel`), [200]);
          cancelled.push(made.body.id as string);
        }
      }),
    );
    calling.catch(() => undefined);
    const ended = { all: 0, inTransaction: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      await pause(30 + Math.random() * 120);
      void invariants.run();
      const now = await endAll();
      ended.all += now.all;
      ended.inTransaction += now.inTransaction;
    }
    isOver = true;
    await calling;
    let isDone = false;
    void ends.finally(() => (isDone = true)).catch(() => undefined);
    await until('the end of all', async () => {
      // A claim whose answer was lost is nobody's for 60 s: they pass at once, for calls that ended.
      if (one.provider.callsUnderWay === 0) {
        await rig.db.query(
          `UPDATE submission_attempt SET call_started_at = clock_timestamp() - interval '61 s'
            WHERE closed_at IS NULL AND call_started_at < clock_timestamp() - interval '2 s'`,
        );
        await closeAbandoned(one.database, null, 'sweep').catch(() => undefined);
      }
      return isDone;
    }, Boolean, 90_000); // prettier-ignore

    // Accepted is stored, one for each key; cancelled is cancelled, and once.
    const rows = await rig.db.query<{ idempotency_key: string; id: string; state: string; version: number }>(
      `SELECT idempotency_key, id, state, version FROM payment WHERE tenant_id = $1`,
      [client.tenant],
    );
    expect(new Map(rows.map((row) => [row.idempotency_key, row.id]))).toEqual(ids);
    expect(rows).toHaveLength(ids.size);
    const gone = rows.filter((row) => row.state === 'cancelled');
    expect(gone.map((row) => row.id).toSorted()).toEqual(cancelled.toSorted());
    expect(gone.filter((row) => row.version !== 2)).toEqual([]);
    // Due is paid, and once.
    expect(new Set(await ends)).toEqual(new Set(['succeeded']));
    expect((await rig.simulator.allEffects()).duplicates).toEqual([]);
    for (const { id } of payments) expect((await rig.simulator.effects(id)).count).toBe(1);
    expect((await rig.simulator.early()).count).toBe(0);
    // What a commit left in the outbox was published: a start for each that was not cancelled before it.
    await until('the outbox', () => rig.db.query('SELECT 1 FROM outbox'), (left) => left.length === 0); // prettier-ignore
    const started = new Set(starter.of('start'));
    expect(rows.filter((row) => row.state === 'scheduled' && !started.has(row.id))).toEqual([]);
    // The invariants' own connection came back too. Invariant 1: lost claims were moved into the past.
    const checked = await invariants.run();
    expect(checked.filter((result) => result.kind !== 'checked')).toEqual([]);
    expect(await rig.breaches([1])).toEqual([]);
    // Exposure: the faults met every pool, in the middle of work.
    expect(refused).toBeGreaterThan(0);
    expect(ended.inTransaction).toBeGreaterThan(0);
    expect(workerFaults + one.events.count('fault')).toBeGreaterThan(0);
    expect(relayed.count('fault')).toBeGreaterThan(0);
    console.log(`sessions ended: ${ended.all}, at work ${ended.inTransaction}; ${ids.size} creates, 503s ${refused}`);
  }, 150_000); // prettier-ignore
});
