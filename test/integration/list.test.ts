import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { base32 } from '../../src/domain/base32.js';
import { FAR_HORIZON, startTestApi, type Client, type TestApi } from '../support/api.js';
import { insertScheduled, unique } from '../support/builders.js';
import { directCipher } from '../support/ciphers.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database, env: FAR_HORIZON });
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

/** Follows next_cursor to the end; `between` runs after each page. */
async function walk(client: Client, query: string, between: () => Promise<unknown> = async () => undefined) {
  const pages: string[][] = [];
  let path = `/v1/payments?${query}`;
  for (;;) {
    const answer = await client.get(path);
    expect(answer.status, answer.text).toBe(200);
    pages.push((answer.body.data as { id: string }[]).map((p) => p.id));
    const cursor = answer.body.next_cursor as string | null;
    if (cursor === null) {
      expect(answer.headers['link']).toBeUndefined();
      return pages;
    }
    expect(pages.length).toBeLessThan(200);
    const link = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers['link']));
    expect(link?.[1]).toContain(cursor);
    path = link?.[1] ?? '';
    await between();
  }
}

async function idsOf(tenant: string): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    'SELECT id FROM payment WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC',
    [tenant],
  );
  return rows.map((row) => row.id);
}

/** Ten payments of one transaction, all created at this very microsecond. */
async function tenAtOnce(client: Client, createdAt: string): Promise<void> {
  const cipher = directCipher(api.keys);
  for (let i = 0; i < 10; i++) {
    const key = unique('order');
    const id = `pay_${base32(randomBytes(20))}`;
    const sealed = await cipher.encrypt({
      tenant: client.tenant,
      paymentId: id,
      field: 'destination',
      plaintext: 'acct',
    });
    const digested = cipher.digests.digest('acct');
    await db.query(
      `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
         destination, destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after,
         state, created_by, created_at)
       VALUES ($1, $2, $3, '\\x00', 1, 1, 'EUR', $4, $5, $6, $7, 'simulated', 'simulated/default', now(),
         now() + interval '1 day', 'scheduled', 'test', $8)`,
      [id, client.tenant, key, sealed.ciphertext, sealed.keyId, digested.digest, digested.keyId, createdAt],
    );
  }
}

describe('a walk through a list', () => {
  it.each([1, 4])('by pages of %d meets each payment once while others are added (PG-04)', async (limit) => {
    const client = await api.client();
    await db.database.transaction(async (tx) => {
      const cipher = directCipher(api.keys);
      for (let i = 0; i < 10; i++) {
        await insertScheduled(tx, { tenant: client.tenant, lane: 'simulated/default', cipher });
      }
    });
    const before = await idsOf(client.tenant);
    const pages = await walk(client, `limit=${limit}`, () => client.create());
    expect(pages.flat()).toEqual(before);
    expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true);
    expect((await idsOf(client.tenant)).length).toBeGreaterThan(before.length);
  });

  it.each([1, 3, 10])(
    'by pages of %d tells payments of one microsecond apart, and their neighbours (PG-04)',
    async (limit) => {
      const client = await api.client();
      for (const at of ['2026-01-01 00:00:00.123456+00', '2026-01-01 00:00:00.123457+00']) {
        await tenAtOnce(client, at);
      }
      const pages = await walk(client, `limit=${limit}`);
      expect(pages.flat()).toEqual(await idsOf(client.tenant));
      expect(pages.flat()).toHaveLength(20);
    },
  );

  it('of a tenant without payments is one empty page', async () => {
    const answer = await (await api.client()).get('/v1/payments');
    expect([answer.status, answer.body]).toEqual([200, { data: [], next_cursor: null }]);
  });

  it('shows 25 payments unless told otherwise, each as a read would show it', async () => {
    const client = await api.client();
    await tenAtOnce(client, '2026-01-01 00:00:00.1+00');
    await tenAtOnce(client, '2026-01-01 00:00:00.2+00');
    await tenAtOnce(client, '2026-01-01 00:00:00.3+00');
    const { body } = await client.get('/v1/payments');
    expect(body.data).toHaveLength(25);
    const read = await client.get(`/v1/payments/${body.data[0].id}`);
    expect(body.data[0]).toEqual(read.body);
  });
});

describe('a filter', () => {
  it('narrows by state, currency, provider, reference and ranges, and they add up', async () => {
    const client = await api.client();
    const make = async (members: Record<string, unknown>): Promise<string> =>
      (await client.create(members)).body.id as string;
    const a = await make({ reference: 'r1', currency: 'EUR', execute_at: '2090-01-01T00:00:00Z' });
    const b = await make({ reference: 'r1', currency: 'USD', execute_at: '2090-01-02T00:00:00Z' });
    const c = await make({ reference: 'r2', currency: 'USD', execute_at: '2090-01-03T00:00:00Z' });
    const d = await make({ currency: 'EUR', execute_at: '2090-01-04T00:00:00.000001Z' });
    await (await api.person(client.tenant)).post(`/v1/payments/${b}/hold`);
    const createdAt = (await client.get(`/v1/payments/${c}`)).body.created_at as string;
    const found = async (query: string) => (await walk(client, `limit=1&${query}`)).flat();
    expect(await found('state=held')).toEqual([b]);
    expect(await found('state=scheduled')).toEqual([d, c, a]);
    expect(await found('currency=USD')).toEqual([c, b]);
    expect(await found('reference=r1')).toEqual([b, a]);
    expect(await found('reference=r1&currency=EUR')).toEqual([a]);
    expect(await found('provider=simulated')).toEqual([d, c, b, a]);
    expect(await found('provider=other')).toEqual([]);
    expect(await found('execute_at_from=2090-01-02T00:00:00Z')).toEqual([d, c, b]);
    expect(await found('execute_at_before=2090-01-02T00:00:00Z')).toEqual([a]);
    expect(await found('execute_at_from=2090-01-04T00:00:00.000001Z')).toEqual([d]);
    expect(await found(`created_at_from=${createdAt}`)).toEqual([d, c]);
    expect(await found(`created_at_before=${createdAt}`)).toEqual([b, a]);
    expect(await found(`created_at_before=${createdAt}&reference=r1&state=held`)).toEqual([b]);
  });

  it.each([
    'state=paid', 'state=', 'currency=eur', 'currency=XXX', 'provider=A', 'limit=0', 'limit=101', 'limit=1e1', 'limit=-1',
    'limit=', 'limit=1&limit=2', 'state=held&state=held', 'execute_at_from=2090-01-01', 'created_at_before=now', 'offset=3',
    'tenant_id=other', '__proto__=1', 'cursor=',
  ])('of %s is 400 (ID-09)', async (query) => {
    const client = await api.client();
    const answer = await client.get(`/v1/payments?${query}`);
    expect([answer.status, answer.body.code], answer.text).toEqual([400, 'validation_failed']);
  }); // prettier-ignore
});

describe('a cursor', () => {
  it('is only good for the filters and the tenant it was made for', async () => {
    const [client, other] = [await api.client(), await api.client()];
    for (const who of [client, other]) for (let i = 0; i < 3; i++) await who.create();
    const cursor = (await client.get('/v1/payments?limit=1')).body.next_cursor as string;
    const refused = async (who: Client, query: string) => {
      const answer = await who.get(`/v1/payments?${query}`);
      expect([answer.status, answer.body.code], query).toEqual([400, 'cursor_invalid']);
    };
    await refused(client, `cursor=${cursor}&state=scheduled`);
    await refused(other, `cursor=${cursor}`);
    await refused(client, `cursor=${cursor}A`);
    await refused(client, `cursor=${cursor.slice(0, -1)}`);
    await refused(
      client,
      `cursor=${cursor.slice(0, 20)}${cursor[20] === 'A' ? 'B' : 'A'}${cursor.slice(21)}`,
    );
    await refused(client, 'cursor=AAAA');
    // The page size is no part of what the cursor means.
    expect((await client.get(`/v1/payments?limit=2&cursor=${cursor}`)).body.data).toHaveLength(2);
  });

  it('shows nothing that a tenant could read out of it about others', async () => {
    const client = await api.client();
    await client.create({ reference: 'secret-reference' });
    await client.create({ reference: 'secret-reference' });
    const cursor = (await client.get('/v1/payments?limit=1&reference=secret-reference')).body.next_cursor;
    const text = Buffer.from(cursor, 'base64url').toString('latin1');
    expect(text).not.toContain(client.tenant);
    expect(text).not.toContain('secret-reference');
  });
});

describe('lists of two tenants', () => {
  it('never meet (ID-04)', async () => {
    const [a, b] = [await api.client(), await api.client()];
    const mine = (await a.create({ reference: 'same' }, '1')).body.id;
    const theirs = (await b.create({ reference: 'same' }, '1')).body.id;
    expect((await walk(a, 'reference=same')).flat()).toEqual([mine]);
    expect((await walk(b, '')).flat()).toEqual([theirs]);
  });
});
