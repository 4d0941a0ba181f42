import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { payments } from '../support/command-line.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const PATH = '/v1/webhook-endpoints';
const URL_ = 'https://hooks.example.com/payments';

let db: TestDatabase;
let api: TestApi;
beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

async function made(client: Client, members: object = {}): Promise<{ id: string; secret: string }> {
  const answer = await client.post(PATH, { body: { url: URL_, ...members } });
  expect(answer.status).toBe(201);
  return answer.body as { id: string; secret: string };
}

async function audited(id: string): Promise<readonly string[]> {
  const rows = await db.query<{ line: string }>(
    `SELECT concat_ws(':', action, code) AS line FROM audit_log WHERE target = $1 ORDER BY id`,
    [id],
  );
  return rows.map((row) => row.line);
}

describe('an endpoint', () => {
  it('is added, shown without its secret, disabled, enabled, rotated and deleted, and each change is audited', async () => {
    const client = await api.client();
    const added = await client.post(PATH, { body: { url: URL_, description: 'ledger' } });
    expect(added.status).toBe(201);
    expect(added.body).toMatchObject({
      url: URL_,
      status: 'active',
      event_types: null,
      description: 'ledger',
    });
    expect(added.body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const { id } = added.body as { id: string };
    expect(added.headers['location']).toBe(`${PATH}/${id}`);

    const { secret: _secret, ...shown } = added.body as Record<string, unknown>;
    expect((await client.get(`${PATH}/${id}`)).body).toEqual(shown);
    expect((await client.get(PATH)).body).toEqual({ data: [shown] });

    for (const repeat of [1, 2]) {
      const off = await client.post(`${PATH}/${id}/disable`);
      expect([repeat, off.status, off.body.status, off.body.status_reason]).toEqual([repeat, 200, 'disabled', 'by_request']); // prettier-ignore
    }
    expect((await client.post(`${PATH}/${id}/enable`)).body).toMatchObject({
      status: 'active',
      status_reason: null,
    });
    const rotated = await client.post(`${PATH}/${id}/rotate-secret`, { body: {} });
    expect(rotated.status).toBe(200);
    expect(rotated.body.secret).not.toBe(added.body.secret);
    expect(rotated.body.previous_secret_until).not.toBeNull();
    const leaked = await client.post(`${PATH}/${id}/rotate-secret`, {
      body: { previous_expires_in_seconds: 0 },
    });
    expect(leaked.body.previous_secret_until).toBeNull();
    expect((await client.delete(`${PATH}/${id}`)).status).toBe(204);
    expect((await client.delete(`${PATH}/${id}`)).status).toBe(404);
    expect((await client.get(`${PATH}/${id}`)).status).toBe(404);
    expect((await client.get(PATH)).body).toEqual({ data: [] });
    expect(await audited(id)).toEqual([
      'webhook_endpoint_added',
      'webhook_endpoint_changed:disabled',
      'webhook_endpoint_changed:enabled',
      'webhook_secret_rotated',
      'webhook_secret_rotated',
      'webhook_endpoint_removed',
    ]);
    expect(api.logLines.join('')).not.toContain('whsec_');
  });

  it.each([
    ['http://hooks.example.com/', 'not_https'],
    ['https://127.0.0.1/', 'ip_literal'],
    ['https://2130706433/', 'ip_literal'],
    ['https://localhost/', 'host_not_public'],
    ['https://a:b@hooks.example.com/', 'has_credentials'],
    ['https://hooks.example.com:8080/', 'port_not_allowed'],
  ])('is refused at %s with its reason and without the URL', async (url, reason) => {
    const answer = await (await api.client()).post(PATH, { body: { url } });
    expect([answer.status, answer.body.code, answer.body.reason]).toEqual([
      422,
      'endpoint_url_not_allowed',
      reason,
    ]);
    expect(answer.text).not.toContain(url);
  });

  it.each([
    {},
    { url: 1 },
    { url: URL_, event_types: [] },
    { url: URL_, event_types: ['payment.paid'] },
    { url: URL_, secret: 'whsec_mine' },
    { url: URL_, status: 'disabled' },
    { url: URL_, tenant_id: 'another' },
  ])('is refused with 400 for %j (SE-02)', async (body) => {
    expect((await (await api.client()).post(PATH, { body })).status).toBe(400);
  });

  it('is one of ten at most, also when they are added at once', async () => {
    const client = await api.client();
    const answers = await Promise.all(
      Array.from({ length: 14 }, () => client.post(PATH, { body: { url: URL_ } })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10);
    expect(answers.filter(({ body }) => body.code === 'too_many_endpoints')).toHaveLength(4);
    const [{ id }] = (await client.get(PATH)).body.data as [{ id: string }];
    await client.delete(`${PATH}/${id}`);
    await made(client);
  });

  it('of another tenant is as one that does not exist, in every route', async () => {
    const [mine, other] = [await api.client(), await api.client()];
    const { id } = await made(mine);
    await mine.create();
    const [row] = (await mine.get(`${PATH}/${id}/deliveries`)).body.data as [{ event_id: string }];
    const absent = 'whe_00000000000000000000000000000000';
    const calls = (target: string) =>
      Promise.all([
        other.get(`${PATH}/${target}`),
        other.post(`${PATH}/${target}/enable`),
        other.post(`${PATH}/${target}/disable`),
        other.post(`${PATH}/${target}/rotate-secret`, { body: {} }),
        other.post(`${PATH}/${target}/resend`, { body: { since: new Date().toISOString() } }),
        other.get(`${PATH}/${target}/deliveries`),
        other.post(`${PATH}/${target}/deliveries/${row.event_id}/resend`),
        other.delete(`${PATH}/${target}`),
      ]);
    const facts = (answers: Awaited<ReturnType<typeof calls>>) =>
      answers.map(({ status, body }) => [status, body.code as string]);
    const foreign = facts(await calls(id));
    expect(foreign).toEqual(Array.from({ length: 8 }, () => [404, 'not_found']));
    expect(foreign).toEqual(facts(await calls(absent)));
    expect(facts(await calls('whe_x'))).toEqual(foreign);
    expect((await mine.get(`${PATH}/${id}`)).body).toMatchObject({
      status: 'active',
      previous_secret_until: null,
    });
    expect((await other.get(PATH)).body).toEqual({ data: [] });
  });

  it('needs its scope', async () => {
    const client = await api.client({ scopes: ['payments:read'] });
    expect((await client.get(PATH)).body).toMatchObject({ status: 403, code: 'forbidden' });
    expect((await client.post(PATH, { body: { url: URL_ } })).status).toBe(403);
    expect((await api.as(null).get(PATH)).status).toBe(401);
  });
});

describe('the delivery log', () => {
  it('shows each event of the tenant once over its pages, with codes and times alone', async () => {
    const client = await api.client();
    const { id } = await made(client, { event_types: ['payment.scheduled', 'payment.cancelled'] });
    for (let n = 0; n < 5; n++) {
      const { body } = await client.create();
      await client.post(`/v1/payments/${body.id as string}/cancel`);
    }
    const seen: string[] = [];
    let path: string | null = `${PATH}/${id}/deliveries?limit=3`;
    while (path !== null) {
      const { body }: { body: { data: { event_id: string }[]; next_cursor: string | null } } =
        await client.get(path);
      seen.push(...body.data.map((entry) => entry.event_id));
      path = body.next_cursor === null ? null : `${PATH}/${id}/deliveries?limit=3&cursor=${body.next_cursor}`;
    }
    expect(seen).toHaveLength(10);
    expect(new Set(seen).size).toBe(10);
    const [newest] = (await client.get(`${PATH}/${id}/deliveries?limit=1&result=pending`)).body
      .data as object[];
    expect(newest).toEqual({
      event_id: seen[0],
      type: 'payment.cancelled',
      payment_id: expect.stringMatching(/^pay_/) as string,
      version: 2,
      occurred_at: expect.any(String) as string,
      queued_at: expect.any(String) as string,
      result: 'pending',
      tries: 0,
      last_try_at: null,
      last_code: null,
      last_http_status: null,
      last_duration_ms: null,
      next_try_at: expect.any(String) as string,
    });
    expect((await client.get(`${PATH}/${id}/deliveries?result=delivered`)).body).toEqual({ data: [], next_cursor: null }); // prettier-ignore
    expect((await client.get(`${PATH}/${id}/deliveries?cursor=bm9uZQ`)).body.code).toBe('cursor_invalid');
    expect((await client.get(`${PATH}/${id}/deliveries?result=lost`)).status).toBe(400);
  });

  it('queues one event again, also one that arrived, and a replay from a time', async () => {
    const client = await api.client();
    const { id } = await made(client);
    await client.create();
    const [{ event_id: event }] = (await client.get(`${PATH}/${id}/deliveries`)).body.data as [
      { event_id: string },
    ];
    await db.query(
      `UPDATE webhook_delivery SET result = 'delivered', done_at = clock_timestamp(), tries = 1 WHERE endpoint_id = $1`,
      [id],
    );
    expect((await client.post(`${PATH}/${id}/deliveries/${event}/resend`)).status).toBe(204);
    const [entry] = (await client.get(`${PATH}/${id}/deliveries`)).body.data as object[];
    expect(entry).toMatchObject({ event_id: event, result: 'pending', tries: 0 });
    expect((await client.post(`${PATH}/${id}/deliveries/evt_x/resend`)).status).toBe(404);
    const unknown = `evt_${'a'.repeat(32)}_1`;
    expect((await client.post(`${PATH}/${id}/deliveries/${unknown}/resend`)).status).toBe(404);

    const since = new Date(Date.now() - 60_000).toISOString();
    const replay = await client.post(`${PATH}/${id}/resend`, { body: { since } });
    expect([replay.status, replay.body.replaying_from]).toEqual([202, since.replace('Z', '000Z')]);
    const old = new Date(Date.now() - 31 * 86_400_000).toISOString();
    const refused = await client.post(`${PATH}/${id}/resend`, { body: { since: old } });
    expect([refused.status, refused.body.code]).toEqual([422, 'replay_too_old']);
    expect(await audited(id)).toEqual(['webhook_endpoint_added', 'webhook_endpoint_changed:replayed']);
  });
});

describe('payments webhooks', () => {
  it('makes, shows, disables, enables, rotates, resends and deletes an endpoint', async () => {
    const client = await api.client();
    const ask = (...args: string[]) =>
      payments(['webhooks', ...args], { PAYMENTS_API_URL: api.url, PAYMENTS_API_KEY: client.key });
    expect((await ask()).out).toContain('No endpoints');
    const made_ = await ask('create', URL_, '--event', 'payment.scheduled', '--json');
    const { id, secret } = made_.json() as { id: string; secret: string };
    expect(secret).toMatch(/^whsec_/);
    const listed = await ask('list');
    expect(listed.out).toContain(id);
    expect(listed.out).toContain('payment.scheduled');
    expect(listed.out).not.toContain('whsec_');
    expect((await ask('disable', id)).out).toContain('disabled (by_request)');
    expect((await ask('enable', id)).out).toContain('active');
    const rotated = await ask('rotate-secret', id);
    expect(rotated.out).toContain('secret, shown only now');
    expect(rotated.out).not.toContain(secret);
    await client.create();
    const log = (await ask('deliveries', id, '--json')).json() as { data: { event_id: string }[] };
    const [event] = log.data;
    expect((await ask('deliveries', id, '--result', 'pending')).out).toContain(event?.event_id);
    expect((await ask('resend', id, '--event', event?.event_id ?? '')).out).toContain('is queued');
    const since = new Date(Date.now() - 60_000).toISOString();
    expect((await ask('resend', id, '--since', since)).out).toContain('a replay has come to');
    expect((await ask('resend', id)).exitCode).toBe(2);
    expect((await ask('delete', id)).out).toContain('is deleted');
    expect((await ask('enable', id)).exitCode).toBe(1);
  });

  it('says why a URL is refused, and answers 2 to what is no endpoint id', async () => {
    const client = await api.client();
    const env = { PAYMENTS_API_URL: api.url, PAYMENTS_API_KEY: client.key };
    const refused = await payments(['webhooks', 'create', 'https://10.0.0.1/'], env);
    expect(refused.exitCode).toBe(1);
    expect(refused.err).toContain('endpoint_url_not_allowed');
    expect((await payments(['webhooks', 'disable', '../payments'], env)).exitCode).toBe(2);
  });
});
