import { readlinkSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { processesIn } from '../../src/dev/process/process-identity.js';
import { Rig, type Answer } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.stop());

const ROUNDS = 10;
/** Each payment is due so soon after its create that every restart meets some of them. */
const DUE_WITHIN_MS = [1_500, 5_000] as const;
const CLIENTS = 8;
const NEXT_CREATE_MS = 120;
const AGAIN_MS = 100;

const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms));
const pick = (n: number): number => Math.floor(Math.random() * n);

/** What clients were promised: the judge compares it with Postgres and with the provider's ledger. */
interface Promised {
  readonly due: Map<string, number>;
  readonly cancelled: Set<string>;
  /** Cancels that came too late. */
  readonly refused: Set<string>;
  answers: Record<number, number>;
}

/** Repeats a call until it is neither 503 nor without an answer; each other 5xx fails the test. */
async function insist(promised: Promised, call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await call().catch(() => null);
    const status = answer?.status ?? 0;
    promised.answers[status] = (promised.answers[status] ?? 0) + 1;
    if (answer !== null && status !== 503 && status !== 429) return answer;
    await pause(AGAIN_MS);
  }
}

/** Creates payments one after the other until told to stop; cancels every third, some of them at their due time. */
async function client(name: string, promised: Promised, isOver: () => boolean): Promise<void> {
  const cancels: Promise<void>[] = [];
  for (let n = 0; !isOver(); n++) {
    const [soonest, latest] = DUE_WITHIN_MS;
    // So far ahead that a create that has to be repeated over an outage is not refused as past.
    const due = Date.now() + soonest + pick(latest - soonest);
    const answer = await insist(promised, () =>
      rig.call('POST', '/v1/payments', {
        headers: { 'idempotency-key': `${name}-${n}` },
        body: { amount: 100 + n, currency: 'EUR', destination: 'acct_1', execute_at: new Date(due).toISOString() },
      }),
    ); // prettier-ignore
    // A create that the outage held up past its time is refused, and nothing was promised.
    if (answer.status !== 422) {
      expect([200, 201], JSON.stringify(answer)).toContain(answer.status);
      const id = answer.body['id'] as string;
      promised.due.set(id, due);
      await rig.provider.expect({ [id]: due });
      if (n % 3 === 0) cancels.push(cancel(id, n % 2 === 0 ? due - 300 : Date.now(), promised));
    }
    await pause(NEXT_CREATE_MS);
  }
  await Promise.all(cancels);
}

async function cancel(id: string, at: number, promised: Promised): Promise<void> {
  await rig.at(at, 0);
  const answer = await insist(promised, () => rig.cancel(id));
  expect([200, 409], JSON.stringify(answer)).toContain(answer.status);
  (answer.status === 200 ? promised.cancelled : promised.refused).add(id);
}

const answersSql = (): Promise<boolean> =>
  rig.sql('SELECT 1').then(
    () => true,
    () => false,
  );

/** Ways to lose Postgres; each ends when it is down, or has ended every session. */
const WAYS: Readonly<Record<string, (data: string) => Promise<void>>> = {
  'fast stop': async () => void (await rig.stack.stopProcess('postgres')),
  'immediate stop': async () => {
    process.kill(rig.stack.pids['postgres'] ?? 0, 'SIGQUIT');
    await rig.until('Postgres is down', async () => Promise.resolve(rig.stack.pids['postgres'] === undefined));
  },
  'kill -9 of all': async (data) => {
    for (const pid of processesIn(data)) process.kill(pid, 'SIGKILL');
    await rig.until('Postgres is down', async () => Promise.resolve(rig.stack.pids['postgres'] === undefined));
  },
  'kill -9 of a session': async () => {
    const [session] = await rig.sql<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'payments-%' ORDER BY random() LIMIT 1`,
    );
    process.kill(session?.pid ?? 0, 'SIGKILL');
    await rig.until('the crash', async () => !(await answersSql()), 2_000).catch(() => undefined);
  },
}; // prettier-ignore
const ORDER = ['fast stop', 'immediate stop', 'kill -9 of all', 'kill -9 of a session'] as const;

async function probe(url: string, path: string): Promise<number> {
  const answer = await fetch(`${url}${path}`);
  await answer.body?.cancel();
  return answer.status;
}

/** Both processes: alive without Postgres, ready only with it. */
async function probes(path: string): Promise<readonly number[]> {
  const { health_url: api, worker_health_url: worker } = rig.stack;
  return Promise.all([probe(api, path), probe(worker, path)]);
}

const movedBy = async (): Promise<bigint> => {
  const [row] = await rig.sql<{ n: string }>(
    `SELECT count(*)::text AS n FROM payment_transition WHERE to_state = 'succeeded'`,
  );
  return BigInt(row?.n ?? 0);
};

interface Recovery {
  readonly way: string;
  readonly downMs: number;
  readonly createMs: number;
  readonly paidMs: number;
  readonly readyMs: number;
}

/** One loss of Postgres and the way back. Times count from when it takes connections again. */
async function lose(way: string, round: number, data: string): Promise<Recovery> {
  const lostAt = performance.now();
  await WAYS[way]?.(data);
  if (rig.stack.pids['postgres'] === undefined) {
    expect(await probes('/livez')).toEqual([200, 200]);
    expect(await probes('/readyz')).toEqual([503, 503]);
    await rig.stack.restart('postgres');
  }
  await rig.until('Postgres answers', answersSql);
  const backAt = performance.now();
  const before = await movedBy();
  const since = (): number => Math.round(performance.now() - backAt);
  let tries = 0;
  const createMs = rig
    .until('a create', async () => {
      const answer = await rig.call('POST', '/v1/payments', {
        headers: { 'idempotency-key': `probe-${round}-${tries++}` },
        body: { amount: 1, currency: 'EUR', destination: 'acct_1', execute_at: new Date(Date.now() + 86_400_000).toISOString() },
      });
      return answer.status === 201;
    })
    .then(since); // prettier-ignore
  const paidMs = rig.until('a payment', async () => (await movedBy()) > before).then(since);
  const readyMs = rig
    .until('both are ready', async () => (await probes('/readyz')).every((status) => status === 200))
    .then(since);
  return {
    way,
    downMs: Math.round(backAt - lostAt),
    createMs: await createMs,
    paidMs: await paidMs,
    readyMs: await readyMs,
  };
}

it.runIf(process.platform === 'linux')(
  'Postgres is lost ten times under creates, cancels and payments that come due: no process ends, nothing is lost or doubled (PG-01)',
  async () => {
    const { api, worker } = rig.stack.pids;
    const data = readlinkSync(`/proc/${rig.stack.pids['postgres']}/cwd`);
    const promised: Promised = { due: new Map(), cancelled: new Set(), refused: new Set(), answers: {} };
    let isOver = false;
    const clients = Promise.all(
      Array.from({ length: CLIENTS }, (_, i) => client(`client-${i}`, promised, () => isOver)),
    );
    // A client that fails ends the test at once, and not as an unhandled rejection.
    clients.catch(() => undefined);
    await rig.until('the first payment', async () => (await movedBy()) > 0n);
    const recoveries: Recovery[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      recoveries.push(await lose(ORDER[round % ORDER.length] ?? '', round, data));
      const { api: apiNow, worker: workerNow } = rig.stack.pids;
      expect([apiNow, workerNow]).toEqual([api, worker]);
      await pause(500 + pick(1_000));
    }
    isOver = true;
    await clients;
    const lastFaultAt = Date.now();
    const ids = [...promised.due.keys()];
    const kept = ids.filter((id) => !promised.cancelled.has(id));
    const drainMs = await rig.untilFinal(kept, lastFaultAt, 110_000);
    console.table(recoveries);
    console.log(
      `${ids.length} accepted, ${promised.cancelled.size} cancelled, ${promised.refused.size} cancels too late, ` +
        `answers ${JSON.stringify(promised.answers)}, all final ${drainMs} ms after the last fault`,
    );
    await rig.judge(kept, [...promised.cancelled]);
    expect(await rig.states(kept)).toEqual({ succeeded: kept.length });
    expect(await rig.states([...promised.cancelled])).toEqual({ cancelled: promised.cancelled.size });
    expect(Object.keys(promised.answers).filter((status) => !['0', '200', '201', '409', '422', '429', '503'].includes(status))).toEqual([]); // prettier-ignore
    // Exposure: the outages were met, by clients and by cancels that raced.
    expect(promised.answers[503]).toBeGreaterThan(0);
    expect(promised.cancelled.size).toBeGreaterThan(0);
    expect(rig.stack.events.filter((event) => event.name !== 'postgres')).toEqual([]);
    expect([rig.stack.pids['api'], rig.stack.pids['worker']]).toEqual([api, worker]);
  },
  240_000,
);
