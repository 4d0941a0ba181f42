import { appendFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Connection, WorkflowClient } from '@temporalio/client';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesOf, hitsIn, hitsInFiles } from '../support/leak-search.js';
import { Rig } from '../support/rig.js';

/** Words that stand in every marked value; the search looks for them in every form. */
const MARK = {
  destination: 'zqdst7canary',
  key: 'zqkey7canary',
  reference: 'zqref7canary',
  description: 'zqtxt7canary',
  metadata: 'zqmet7canary',
  /** Planted in clear beside them: the same search must find it. */
  control: 'zqctl7canary',
} as const;
const SECRETS = [MARK.destination, MARK.key, MARK.reference, MARK.description, MARK.metadata];
const COUNT = 1_000;
/** So many of them are due while the test runs; the others wait, are held or cancelled. */
const DUE = 300;

/** What the provider does with one payment in ten, by turns: it repeats what it was sent in every way it can. */
const FAULTS: readonly Readonly<Record<string, readonly string[]>>[] = [
  { submit: ['echo_error_after'] },
  { submit: ['reset_after'], lookup: ['echo_error_after'] },
  { submit: ['broken_json_after'] },
  { submit: ['truncate_after'] },
  { submit: ['unknown_status_after'] },
  { submit: ['other_destination_after'] },
  { submit: ['decline'] },
];
/** More would open the lane's breaker, and what is due would wait. */
const FAULT_EVERY = 10;

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start({
    sendsWebhooks: true,
    env: { PAYMENTS_LADDER_DIVISOR: '60', PAYMENTS_LOG_LEVEL: 'debug' },
    postgresSettings: { wal_level: 'logical' },
  });
});
afterAll(() => rig.stop());

const body = (n: number, executeAt: string) => ({
  amount: 100 + n,
  currency: 'EUR',
  destination: `acct_${MARK.destination}${n}`,
  reference: `${MARK.reference}${n}`,
  description: `${MARK.description} ${n}`,
  metadata: { note: `${MARK.metadata}${n}` },
  execute_at: executeAt,
});
const key = (n: number): string => `${MARK.key}-${n}`;

/** Creates those with the numbers from `from` on, 20 at a time, and notes their ids. @returns one answer. */
async function create(ids: string[], from: number, to: number, executeAt: string): Promise<string> {
  let own = '';
  let next = from;
  const client = async (): Promise<void> => {
    while (next < to) {
      const n = next++;
      const answer = await rig.call('POST', '/v1/payments', {
        headers: { 'idempotency-key': key(n) },
        body: body(n, executeAt),
      });
      if (answer.status !== 201) throw new Error(`create ${n}: ${answer.status}`);
      ids[n] = answer.body['id'] as string;
      own = JSON.stringify(answer.body);
    }
  };
  await Promise.all(Array.from({ length: 20 }, client));
  return own;
}

async function planFaults(ids: readonly string[]): Promise<void> {
  const faulted = ids.filter((_, n) => n % FAULT_EVERY === 0);
  const scripts = faulted.map((reference, n) => ({ reference, ...FAULTS[n % FAULTS.length] }));
  await rig.provider.plan({ scripts });
}

/** Asks for everything that is refused, with marks wherever a client can put them. */
async function refusedAnswers(ids: readonly string[]): Promise<string> {
  const { stack } = rig;
  const good = body(0, new Date(Date.now() + 86_400_000).toISOString());
  const post = (of: unknown, headers: Record<string, string> = {}, key: 'client' | 'other_tenant' = 'client') =>
    ({ method: 'POST', path: '/v1/payments', of, headers: { 'idempotency-key': `${MARK.key}-x`, ...headers }, key }) as const; // prettier-ignore
  const read = (path: string, key: 'client' | 'other_tenant' = 'client') =>
    ({ method: 'GET', path, of: undefined, headers: {} as Record<string, string>, key }) as const;
  const calls = [
    post({ ...good, amount: `${MARK.reference}` }),
    post({ ...good, currency: MARK.reference }),
    post({ ...good, destination: `${MARK.destination} with spaces\u0000` }),
    post({ ...good, destination: MARK.destination.repeat(100) }),
    post({ ...good, execute_at: MARK.description }),
    post({ ...good, provider: MARK.reference }),
    post({ ...good, metadata: { note: MARK.metadata.repeat(1_000) } }),
    post({ ...good, reference: `${MARK.reference}\ud800` }),
    post(`{"destination":"${MARK.destination}","destination":"${MARK.destination}"}`),
    post(`{"destination":"${MARK.destination}`),
    post(good, { 'idempotency-key': `${MARK.key} `.repeat(30) }),
    post(good, { 'content-type': `text/${MARK.reference}` }),
    post(good, { authorization: `Bearer ${MARK.key}` }),
    post({ ...good, amount: 7 }, { 'idempotency-key': key(1) }),
    post({ ...good, amount: 7 }, { 'idempotency-key': key(2) }),
    { ...post(MARK.description), path: `/v1/payments/${ids[900]}/cancel` },
    { ...post({}), path: `/v1/payments/${ids[0]}/cancel` },
    { ...post({}, { 'if-match': `"${MARK.reference}"` }), path: `/v1/payments/${ids[901]}/cancel` },
    { ...post({ id: MARK.reference, destination: MARK.destination }), path: '/v1/webhooks/simulated' },
    { ...post({ destination: MARK.destination }), path: `/v1/webhooks/${MARK.reference}` },
    read(`/v1/payments/${MARK.key}`),
    read(`/v1/${MARK.reference}`),
    read(`/v1/payments?cursor=${MARK.reference}`),
    read(`/v1/payments?state=${MARK.reference}`),
    // Another tenant's answers hold nothing of this one's, whatever their status is.
    read('/v1/payments', 'other_tenant'),
    read(`/v1/payments?reference=${MARK.reference}1`, 'other_tenant'),
    read(`/v1/payments/${ids[1]}`, 'other_tenant'),
    read(`/v1/payments/${ids[1]}/history`, 'other_tenant'),
    { ...post({}, {}, 'other_tenant'), path: `/v1/payments/${ids[902]}/cancel` },
  ];
  let all = '';
  for (const { method, path, of, headers, key: who } of calls) {
    const answer = await request(`${stack.api_url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${stack.api_keys[who]}`,
        ...(of === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: of === undefined ? null : typeof of === 'string' ? of : JSON.stringify(of),
    });
    const text = await answer.body.text();
    if (who === 'client') expect.soft([path, answer.statusCode >= 400]).toEqual([path, true]);
    all += `${answer.statusCode} ${JSON.stringify(answer.headers)} ${text}\n`;
  }
  return all;
}

/** Every row of every table as text: what a dump holds. */
async function dump(): Promise<string> {
  const tables = await rig.sql<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  let text = '';
  for (const { name } of tables) {
    const rows = await rig.sql<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
    text += `${name}\n${rows.map(({ row }) => row).join('\n')}\n`;
  }
  return text;
}

async function metrics(): Promise<string> {
  const { health_url: api, worker_health_urls: workers } = rig.stack;
  const texts = await Promise.all(
    [api, ...workers].map(async (url) => {
      const answer = await request(`${url}/metrics`);
      expect(answer.statusCode).toBe(200);
      return answer.body.text();
    }),
  );
  return texts.join('\n');
}

/** A mark that lies across two pages of a store is in neither: so many do not all. */
const PLANTS = 5;

/** The control stands in Temporal's store as a careless input would. */
async function plantInTemporal(): Promise<void> {
  const connection = await Connection.connect({ address: rig.stack.temporal_address });
  const client = new WorkflowClient({ connection, namespace: rig.stack.temporal_namespace });
  for (let n = 1; n <= PLANTS; n++) {
    const args = [{ note: MARK.control }];
    await client.start('canary', { workflowId: `canary-${n}`, taskQueue: 'nobody', args });
  }
  await connection.close();
}

/**
 * Temporal's store while it is written, in the order in which it has to be read: the log before the database.
 * A checkpoint moves pages from the log into the database and lets the log begin anew; whoever reads the
 * database first and the log after it finds such a page in neither. The other way round it is found twice at most.
 */
function temporalStore(): readonly string[] {
  const { folder } = rig.stack;
  const database = 'temporal.sqlite';
  const beside = readdirSync(folder).filter((name) => name.startsWith(`${database}-`));
  return [...beside, database].map((name) => join(folder, name));
}

describe('what a payment says', () => {
  it('leaves the database in no log, metric, error, answer to others or workflow; its destination rests sealed', async () => {
    const ids: string[] = [];
    await create(ids, 0, DUE, new Date(rig.secondAfter(15_000)).toISOString());
    await planFaults(ids);
    const own = await create(ids, DUE, COUNT, new Date(Date.now() + 86_400_000).toISOString());
    // Who gave it may read it again; the key alone is never shown.
    expect.soft(Object.keys(hitsIn(own, SECRETS))).toEqual(SECRETS.filter((mark) => mark !== MARK.key));
    for (let n = DUE; n < DUE + 50; n++) expect((await rig.cancel(ids[n] ?? '')).status).toBe(200);
    // Called, and whatever was not understood asked about: how each ends is for other tests.
    const called = `SELECT count(*)::int AS n FROM payment p WHERE id = ANY ($1) AND (state IN ('scheduled', 'submitting')
      OR state IN ('unknown', 'submitted') AND NOT EXISTS
        (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND e.source = 'lookup'))`;
    const sent = ids.slice(0, DUE);
    await rig
      .until(
        'every due payment was called, and asked about',
        async () => (await rig.sql<{ n: number }>(called, [sent]))[0]?.n === 0,
        40_000,
      )
      .catch(async (error: unknown) => {
        throw new Error(`their states: ${JSON.stringify(await rig.states(sent))}`, { cause: error });
      });
    expect.soft((await rig.states(sent))['succeeded']).toBeGreaterThan(DUE - 2 * (DUE / FAULT_EVERY));

    // The controls: whoever searches must find them in every place, in clear and as a cipher that does nothing.
    await rig.sql(
      `CREATE TABLE canary_control AS SELECT $1::text AS clear, convert_to($1, 'UTF8') AS unsealed`,
      [`acct_${MARK.control}`],
    );
    await plantInTemporal();
    const logs = join(rig.stack.folder, 'logs');
    appendFileSync(join(logs, 'canary.log'), `{"destination":"acct_${MARK.control}"}\n`);
    const all = [...SECRETS, MARK.control];

    expect.soft(hitsIn(await refusedAnswers(ids), all)).toEqual({});
    const exposition = await metrics();
    expect.soft(exposition).toContain('payments_transitions_total');
    expect.soft(hitsIn(exposition, all)).toEqual({});

    expect
      .soft(hitsInFiles(filesOf(logs), all))
      .toEqual({ [join(logs, 'canary.log')]: { [MARK.control]: 1 } });
    expect.soft(readdirSync(logs).join()).toMatch(/api.*worker/);

    const inTemporal = Object.values(hitsInFiles(temporalStore(), all));
    expect.soft(inTemporal.length).toBeGreaterThan(0);
    expect.soft(new Set(inTemporal.flatMap((hits) => Object.keys(hits)))).toEqual(new Set([MARK.control]));

    const dumped = await dump();
    const inDump = hitsIn(dumped, all);
    expect.soft(inDump[MARK.destination]).toBeUndefined();
    expect.soft(inDump[MARK.control]).toBe(2);
    // The search reads the rows of the payments: what is no secret of the database is found in each.
    expect.soft(inDump[MARK.reference]).toBeGreaterThanOrEqual(COUNT);

    // What was committed until now is in the files of the tables when this returns, and stays there: unlike
    // above, nothing that is looked for moves while they are read, so their order does not matter.
    await rig.sql('CHECKPOINT');
    const [row] = await rig.sql<{ data_directory: string }>('SHOW data_directory');
    const data = row?.data_directory ?? '';
    const totals: Record<string, Record<string, number>> = { wal: {}, data: {} };
    for (const [path, hits] of Object.entries(hitsInFiles(filesOf(data), all))) {
      const total = totals[path.startsWith(join(data, 'pg_wal')) ? 'wal' : 'data'] ?? {};
      for (const [mark, n] of Object.entries(hits)) total[mark] = (total[mark] ?? 0) + n;
    }
    for (const total of Object.values(totals)) {
      expect.soft(total[MARK.destination]).toBeUndefined();
      expect.soft(total[MARK.control]).toBeGreaterThan(0);
      expect.soft(total[MARK.reference]).toBeGreaterThanOrEqual(COUNT);
    }
  });
});
