import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensureLanes } from '../../src/lanes/lane.store.js';
import { registryOf } from '../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { databaseTime } from '../support/builders.js';
import { payments, type Ran } from '../support/command-line.js';
import { LaneRig } from '../support/lane-rig.js';
import { resultOf } from '../support/results.js';

let rig: LaneRig;
let api: TestApi;
let operator: Client;
const providers = ['default', 'second'].map(
  (account) =>
    new SimulatedProvider({ name: 'simulated', baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_test', account }),
);
beforeAll(async () => {
  rig = await LaneRig.start();
  const [first] = providers;
  api = await startTestApi({ database: rig.db.database, providers: registryOf(first ? [first] : []) });
  operator = await api.person((await api.client()).tenant);
});
afterAll(async () => {
  await api.close();
  await Promise.all(providers.map((provider) => provider.close()));
  await rig.stop();
});
beforeEach(async () => {
  await rig.db.query(`DELETE FROM lane`);
  await ensureLanes(rig.db.database, providers);
});

const LANE = 'simulated/default';
const dueOn = (lane: string, count: number) => rig.due(lane, count);
const pause = (body: unknown = { reason: 'test', account: 'default' }, client = operator) =>
  client.post('/v1/lanes/simulated/pause', { body });
const resume = (body: unknown = { account: 'default' }) =>
  operator.post('/v1/lanes/simulated/resume', { body });
const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/) as unknown;

describe('GET /v1/lanes', () => {
  it('shows budget, breaker and backlog of every lane, by provider and account', async () => {
    const { status, body } = await operator.get('/v1/lanes');
    expect(status).toBe(200);
    const { data } = body as { data: Record<string, unknown>[] };
    expect(data.map((lane) => lane['account'])).toEqual(['default', 'second']);
    expect(data[0]).toEqual({
      provider: 'simulated',
      account: 'default',
      rate_per_second: 20_000,
      burst: 5_000,
      calls_in_flight: 200,
      tokens: 5_000,
      paused: null,
      last_resumed: null,
      breaker: {
        state: 'closed',
        enabled: true,
        reason: null,
        opened_at: null,
        next_probe_at: null,
        failures_in_a_row: 0,
        recent_failures: 0,
      },
      waiting_until: null,
      is_probing: false,
      backlog: 0,
      oldest_due_at: null,
      backlog_ends_at: null,
    });
  });

  it('counts what is due and not started, and when the rate ends it; what is due later is no backlog', async () => {
    const name = await rig.addLane({ rate: 2 });
    await dueOn(name, 3);
    await rig.due(name, 2, { executeAt: await databaseTime(rig.db.database, 3_600) });
    const { body } = await operator.get('/v1/lanes');
    const lanes = (body as { data: Record<string, string | number>[] }).data;
    const lane = lanes.find((each) => each['provider'] === name);
    expect(lane).toMatchObject({ backlog: 3, oldest_due_at: INSTANT, backlog_ends_at: INSTANT });
    const [row] = await rig.db.query<{ in_ms: number }>(
      `SELECT (extract(epoch FROM $1::timestamptz - clock_timestamp()) * 1000)::double precision AS in_ms`,
      [lane?.['backlog_ends_at']],
    );
    expect(row?.in_ms).toBeLessThanOrEqual(1_500);
    expect(row?.in_ms).toBeGreaterThan(-5_000);
  });

  it('shows an open breaker with its reason and next probe, and a throttled lane with its wait', async () => {
    await rig.answers(LANE, '11111');
    const second = 'simulated/second';
    await rig.end(await rig.call(second, 1), resultOf('throttled', { retryAfterMs: 60_000 }));
    const { data } = (await operator.get('/v1/lanes')).body as { data: unknown[] };
    expect(data).toMatchObject([
      {
        breaker: {
          state: 'open',
          reason: 'failures_in_a_row',
          opened_at: INSTANT,
          next_probe_at: INSTANT,
        },
        waiting_until: null,
      },
      { breaker: { state: 'closed' }, waiting_until: INSTANT },
    ]);
  });
});

describe('POST /v1/lanes/{provider}/pause', () => {
  it('stops new starts, says who asked, and is written into the security log', async () => {
    const { status, body } = await pause();
    expect(status).toBe(200);
    expect(body).toMatchObject({
      data: [{ account: 'default', paused: { reason: 'test', since: INSTANT, by: expect.stringMatching(/^person:ada$/) as unknown } }],
    }); // prettier-ignore
    const due = await dueOn(LANE, 2);
    expect(await rig.begin(LANE, due)).toEqual({ kind: 'closed' });
    for (const { id } of due) expect(await rig.state(id)).toBe('scheduled');
    expect(api.logLines.filter((line) => line.includes('"event":"lane_paused"'))).toHaveLength(1);
  });

  it('twice changes nothing: the first reason, time and author stay', async () => {
    const first = (await pause()).body as { data: { paused: unknown }[] };
    const other = await api.person((await api.client()).tenant, { subject: 'grace' });
    const second = await pause({ reason: 'another', account: 'default' }, other);
    expect(second.status).toBe(200);
    expect((second.body as typeof first).data[0]?.paused).toEqual(first.data[0]?.paused);
  });

  it('without an account stops every lane of the provider, and with one only that', async () => {
    await pause({ reason: 'one', account: 'second' });
    expect(await rig.lane(LANE)).toMatchObject({ paused: false });
    expect(await rig.lane('simulated/second')).toMatchObject({ paused: true, pause_reason: 'one' });
    const { body } = await pause({ reason: 'all' });
    expect(
      (body as { data: { paused: { reason: string } }[] }).data.map((lane) => lane.paused.reason),
    ).toEqual(['all', 'one']);
  });

  it('is kept when every process restarts', async () => {
    await pause();
    expect(await ensureLanes(rig.db.database, providers)).toBe(0);
    const later = rig.db.connect('restarted');
    expect(await rig.begin(LANE, await dueOn(LANE, 1), later)).toEqual({ kind: 'closed' });
  });

  it('keeps back retries (T11), and what is claimable before it is claimed', async () => {
    const [unsent] = await rig.call(LANE, 1);
    if (unsent) await rig.end([unsent], resultOf('not_sent'));
    const opened = await rig.started(LANE, await dueOn(LANE, 1));
    await pause();
    expect(await rig.retried(LANE, [unsent?.id ?? ''])).toEqual([]);
    expect(await rig.claim(opened)).toEqual([]);
    await resume();
    expect(await rig.retried(LANE, [unsent?.id ?? ''])).toHaveLength(1);
    expect(await rig.claim(opened)).toHaveLength(1);
  });

  it.each([
    ['a provider that does not exist', '/v1/lanes/nobody/pause', { reason: 'x' }],
    ['a text that is no name of a provider', '/v1/lanes/No%20Body/pause', { reason: 'x' }],
    ['an account that does not exist', '/v1/lanes/simulated/pause', { reason: 'x', account: 'third' }],
  ])('answers 404 for %s', async (_what, path, body) => {
    const answer = await operator.post(path, { body });
    expect(answer.status).toBe(404);
    expect(answer.body).toMatchObject({ code: 'not_found' });
    expect(await rig.lane(LANE)).toMatchObject({ paused: false });
  });

  it.each([
    ['no reason', {}, 'validation_failed'],
    ['an empty reason', { reason: '' }, 'validation_failed'],
    ['a reason of two lines', { reason: 'a\nb' }, 'validation_failed'],
    ['a reason that is too long', { reason: 'x'.repeat(141) }, 'validation_failed'],
    ['an unknown member', { reason: 'x', lane: 'simulated/default' }, 'validation_failed'],
    ['no body', undefined, 'body_missing'],
  ])('answers 400 to %s and pauses nothing', async (_what, body, code) => {
    const answer = await operator.post('/v1/lanes/simulated/pause', body === undefined ? {} : { body });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code });
    expect(await rig.lane(LANE)).toMatchObject({ paused: false });
  });

  it('needs lanes:operate, as does every route of lanes', async () => {
    const client = await api.client();
    for (const answer of [
      await client.get('/v1/lanes'),
      await pause(undefined, client),
      await client.post('/v1/lanes/simulated/resume', { body: {} }),
    ]) {
      expect(answer.status).toBe(403);
    }
    expect((await api.as(null).get('/v1/lanes')).status).toBe(401);
    expect(await rig.lane(LANE)).toMatchObject({ paused: false });
  });
});

describe('POST /v1/lanes/{provider}/resume', () => {
  it('lets everything go on, remembers who did it, and twice changes nothing', async () => {
    await pause();
    const due = await dueOn(LANE, 3);
    const first = await resume();
    expect(first.body).toMatchObject({ data: [{ paused: null, last_resumed: { at: INSTANT } }] });
    const second = await resume();
    expect(second.status).toBe(200);
    type Resumed = { data: { last_resumed: unknown }[] };
    expect((second.body as Resumed).data[0]?.last_resumed).toEqual(
      (first.body as Resumed).data[0]?.last_resumed,
    );
    expect(await rig.started(LANE, due)).toHaveLength(3);
  });

  it('needs no body', async () => {
    await pause({ reason: 'all' });
    expect((await operator.post('/v1/lanes/simulated/resume')).status).toBe(200);
    expect(await rig.lane(LANE)).toMatchObject({ paused: false });
  });

  it('does not end what the provider asked for, nor close the breaker', async () => {
    await rig.answers(LANE, '11111');
    await pause();
    await resume();
    expect(await rig.lane(LANE)).toMatchObject({ breaker: 'open', paused: false });
    expect(await rig.begin(LANE, await dueOn(LANE, 1))).toMatchObject({ kind: 'waiting' });
  });

  it('ends the pause that a refused credential caused, which names the worker that met it', async () => {
    await rig.end(await rig.call(LANE, 1), resultOf('config', { httpStatus: 401 }));
    expect(await rig.lane(LANE)).toMatchObject({
      paused: true,
      pause_reason: 'provider_refused_credential',
      paused_by: `worker:${rig.worker}`,
    });
    await resume();
    expect(await rig.started(LANE, await dueOn(LANE, 1))).toHaveLength(1);
  });
});

describe('payments lanes', () => {
  const as = (...args: string[]): Promise<Ran> =>
    payments(['lanes', ...args], { PAYMENTS_API_URL: api.url, PAYMENTS_API_KEY: operator.key });

  it('shows the lanes as a table, pauses, and resumes', async () => {
    expect((await as()).out).toMatch(/simulated\/default\s+│\s+open/);
    const paused = await as('pause', 'simulated', '--account', 'default', '--reason', 'wrong account');
    expect(paused).toMatchObject({ exitCode: 0, err: '' });
    expect(paused.out).toMatch(/paused since .+Z by person:ada: wrong account/);
    expect(await rig.lane(LANE)).toMatchObject({ paused: true });
    await dueOn(LANE, 2);
    expect((await as('list')).out).toContain('when it is resumed');
    expect((await as('resume', 'simulated')).out).not.toContain('paused since');
    expect(await rig.lane(LANE)).toMatchObject({ paused: false });
    const audited = await rig.db.query(
      `SELECT action, actor, target FROM audit_log WHERE target = $1 ORDER BY id DESC LIMIT 2`,
      [LANE],
    );
    expect(audited).toEqual([
      { action: 'lane_resumed', actor: 'person:ada', target: LANE },
      { action: 'lane_paused', actor: 'person:ada', target: LANE },
    ]);
  });

  it('prints JSON for machines, with and without a word', async () => {
    for (const args of [['--json'], ['list', '--json']]) {
      expect((await as(...args)).json()).toMatchObject({
        data: [{ provider: 'simulated' }, { account: 'second' }],
      });
    }
  });

  it('answers 1 for a provider that does not exist, and 2 to a pause without a reason', async () => {
    const unknown = await as('pause', 'nobody', '--reason', 'x', '--json');
    expect(unknown).toMatchObject({ exitCode: 1 });
    expect(unknown.json()).toMatchObject({ code: 'not_found' });
    expect(await as('pause', 'simulated')).toMatchObject({ exitCode: 2 });
    expect(await rig.lane(LANE)).toMatchObject({ paused: false });
  });
});
