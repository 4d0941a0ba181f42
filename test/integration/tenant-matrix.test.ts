import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiKey } from '../../src/auth/api-key.store.js';
import { SCOPES_OF_KEY_ROLE, type KeyScope } from '../../src/auth/scopes.js';
import { isDocumentationUrl } from '../../src/openapi-document.js';
import type { Sql } from '../../src/persistence/database.js';
import {
  startTestApi,
  testKeys,
  validCreate,
  type ApiAnswer,
  type Client,
  type TestApi,
} from '../support/api.js';
import { seedLane, seedTenant, unique } from '../support/builders.js';
import { databaseCipher } from '../support/ciphers.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { addEvidence, paymentIn } from '../support/payment-states.js';
import { nameOf, routesOf, type Route } from '../support/routes.js';
import { withoutRowSecurity, withoutStoreFilter } from '../support/tenant-nets.js';

/**
 * Two nets keep tenants apart: the filter of the stores, and row-level security. Every route that the
 * router knows is called in every role with an id of the caller's tenant, of another one, and of
 * nobody, with both nets and with each of them alone.
 */

/** Routes that serve every tenant alike, or that no credential of a tenant opens. */
const WITHOUT_TENANT = /^(GET \/v1\/lanes|POST \/v1\/lanes\/:provider\/\w+|POST \/v1\/webhooks\/:provider)$/;
/** Routes that name no single thing: they have tests of their own below. */
const WITHOUT_ID = [
  ...['POST /v1/payments', 'GET /v1/payments', 'GET /v1/reviews'],
  ...['POST /v1/webhook-endpoints', 'GET /v1/webhook-endpoints'],
];

/** What a route needs so that it gets as far as the row. Absent: no body. */
const REQUESTS: Readonly<Record<string, { readonly ifMatch?: true; readonly body: object }>> = {
  'POST /v1/payments/:id/reschedule': { ifMatch: true, body: { execute_at: '2090-01-01T00:00:00Z' } },
  'POST /v1/payments/:id/resolutions': {
    ifMatch: true,
    body: {
      outcome: 'failed',
      reason_code: 'provider_refused',
      proof: { kind: 'provider_statement', statement: 'A mail of the provider.' },
    },
  },
  'POST /v1/webhook-endpoints/:id/rotate-secret': { body: {} },
  'POST /v1/webhook-endpoints/:id/resend': { body: { since: new Date().toISOString() } },
  'POST /v1/reviews/:payment_id/close': { body: { reason_code: 'settled_with_provider' } },
};

const PEOPLE = ['operator', 'approver', 'auditor'] as const;
const ROLES = ['client', 'client_readonly', ...PEOPLE] as const;
type Role = (typeof ROLES)[number];

/** Ids to put into a path: a payment in review, and the proposal about it. */
interface Target {
  readonly payment: string;
  readonly resolution: string;
  /** An endpoint of the tenant that was told of the payment. */
  readonly endpoint: string;
}
const ABSENT: Target = {
  payment: `pay_${'a'.repeat(32)}`,
  resolution: '019b1f0a-0000-7000-8000-000000000000',
  endpoint: `whe_${'0'.repeat(32)}`,
};

interface Tenant {
  readonly id: string;
  readonly callers: Readonly<Record<Role, Client>>;
}

type Net = 'both nets' | 'row-level security alone' | 'the filter of the stores alone';

class World {
  rewritten: ReadonlySet<string> = new Set();
  private readonly endpoints = new Map<string, string>();

  private constructor(
    readonly db: TestDatabase,
    readonly api: TestApi,
    readonly sql: Sql,
    private readonly lane: string,
  ) {}

  static async start(net: Net): Promise<World> {
    const db = await createTestDatabase();
    if (net === 'the filter of the stores alone') await withoutRowSecurity(db);
    const whole = db.as('payments_api');
    const unfiltered = net === 'row-level security alone' ? withoutStoreFilter(whole) : null;
    const api = await startTestApi({ database: unfiltered?.database ?? whole, keys: testKeys() });
    // Worlds are planted past both nets.
    const sql: Sql = {
      query: async <R>(statement: { readonly text: string }, values: readonly unknown[] = []) => {
        const rows = await db.query<R>(statement.text, values);
        return { rows, rowCount: rows.length };
      },
    };
    const world = new World(db, api, sql, await seedLane(sql, { provider: 'simulated' }));
    if (unfiltered) world.rewritten = unfiltered.rewritten;
    return world;
  }

  async tenant(): Promise<Tenant> {
    const id = await seedTenant(this.sql);
    const admin = this.db.as('payments_admin', 'seed', 1);
    const key = async (scopes: readonly (KeyScope)[]) =>
      this.api.as((await createApiKey(admin, this.api.keys, { tenantId: id, name: unique('key'), scopes, mode: 'test' })).text, id); // prettier-ignore
    const person = (role: string) => this.api.person(id, { roles: [role], subject: `${role}-${id}` });
    return {
      id,
      callers: {
        client: await key(SCOPES_OF_KEY_ROLE.client),
        client_readonly: await key(SCOPES_OF_KEY_ROLE.client_readonly),
        operator: await person('operator'),
        approver: await person('approver'),
        auditor: await person('auditor'),
      },
    };
  }

  /** A payment in review with an open proposal of somebody else. */
  async target(tenant: Tenant): Promise<Target> {
    const endpoint = await this.endpoint(tenant);
    const cipher = databaseCipher(this.api.keys, this.sql);
    const payment = await paymentIn('needs_review', this.sql, { tenant: tenant.id, lane: this.lane, cipher });
    const found = { source: 'lookup', kind: 'found', status: 'succeeded', amount: 1_999n, currency: 'EUR' } as const; // prettier-ignore
    await addEvidence(this.sql, payment, found);
    const [row] = await this.db.query<{ version: number }>(`SELECT version FROM payment WHERE id = $1`, [
      payment,
    ]);
    const proposer = await this.api.person(tenant.id, { subject: 'proposer' });
    const proposed = await proposer.post(`/v1/payments/${payment}/resolutions`, {
      headers: { 'if-match': `"v${row?.version ?? 0}"` },
      body: REQUESTS['POST /v1/payments/:id/resolutions']?.body,
    });
    if (proposed.status !== 202) throw new Error(`nothing was proposed: ${proposed.text}`);
    return { payment, resolution: proposed.body.id as string, endpoint };
  }

  /** One at a time, made anew: a test may have deleted it. */
  private async endpoint({ id, callers }: Tenant): Promise<string> {
    const before = this.endpoints.get(id);
    if (before !== undefined) await callers.client.delete(`/v1/webhook-endpoints/${before}`);
    const made = await callers.client.post('/v1/webhook-endpoints', {
      body: { url: 'https://hooks.example.com/payments' },
    });
    if (made.status !== 201) throw new Error(`no endpoint was made: ${made.text}`);
    this.endpoints.set(id, made.body.id as string);
    return made.body.id as string;
  }

  /** Every row that belongs to a tenant, as text. */
  async rowsOf(tenant: Tenant): Promise<readonly unknown[]> {
    const tables = [
      'payment',
      'payment_transition',
      'evidence',
      'review_case',
      'resolution',
      'webhook_endpoint',
      'webhook_delivery',
    ];
    const texts = tables.map(
      (table) => `SELECT '${table}' || t::text AS row FROM ${table} t WHERE tenant_id = $1`,
    );
    return this.db.query(`${texts.join(' UNION ALL ')} ORDER BY 1`, [tenant.id]);
  }

  async close(): Promise<void> {
    await this.api.close();
    await this.db.drop();
  }
}

function call(route: Route, as: Client, target: Target): Promise<ApiAnswer> {
  const isEndpoint = route.url.startsWith('/v1/webhook-endpoints');
  const path = route.url
    .replace(/:(id|payment_id)\b/, isEndpoint ? target.endpoint : target.payment)
    .replace(':rid', target.resolution)
    .replace(':event', `evt_${target.payment.slice('pay_'.length)}_1`);
  if (route.method === 'DELETE') return as.delete(path);
  if (route.method === 'GET') return as.get(path);
  const { ifMatch, body } = REQUESTS[nameOf(route)] ?? {};
  return as.post(path, { body, headers: ifMatch ? { 'if-match': '"v1"' } : {} });
}

/** An answer byte by byte, without what differs between any two answers. */
function shown({ status, headers, text }: ApiAnswer): unknown {
  // What is left of the caller's own budget says nothing about any row.
  const { date: _date, 'request-id': requestId, ratelimit: _left, ...rest } = headers;
  return { status, headers: rest, text: text.replaceAll(String(requestId), '<request>') };
}

const NETS: readonly Net[] = ['both nets', 'row-level security alone', 'the filter of the stores alone'];

describe.each(NETS)('with %s', (net) => {
  let world: World;
  let mine: Tenant;
  let other: Tenant;
  let routes: readonly Route[];
  let theirs: Target;
  beforeAll(async () => {
    world = await World.start(net);
    [mine, other] = [await world.tenant(), await world.tenant()];
    theirs = await world.target(other);
    const all = routesOf(world.api.app).filter(
      (route) => !isDocumentationUrl(route.url) && !WITHOUT_TENANT.test(nameOf(route)),
    );
    // What deletes comes last: the others look for what it takes away.
    routes = all.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
  });
  afterAll(() => world.close());

  it.each(ROLES)('a foreign id is to %s what an absent one is, on every route', async (role) => {
    const as = mine.callers[role];
    const before = await world.rowsOf(other);
    const own = await world.target(mine);
    let found = 0;
    for (const route of routes.filter((each) => !WITHOUT_ID.includes(nameOf(each)))) {
      const absent = await call(route, as, ABSENT);
      expect([nameOf(route), absent.status]).toEqual([nameOf(route), absent.status === 403 ? 403 : 404]);
      expect(shown(await call(route, as, theirs)), nameOf(route)).toEqual(shown(absent));
      if (/:rid|:event/.test(route.url)) {
        const mixed = [
          { ...theirs, payment: own.payment },
          { ...own, payment: theirs.payment },
        ];
        for (const target of mixed) expect(shown(await call(route, as, target))).toEqual(shown(absent));
      }
      // Else the comparison above would compare refusals of the request itself.
      const answer = await call(route, as, own);
      expect([nameOf(route), answer.status === 404 || answer.status === 400]).toEqual([nameOf(route), false]);
      if (answer.status !== 403) found++;
    }
    expect(found).toBeGreaterThan(1);
    expect(await world.rowsOf(other)).toEqual(before);
  });

  it.each(ROLES)('no list of %s shows a row of another tenant, whatever it asks for', async (role) => {
    const as = mine.callers[role];
    const foreign = await other.callers[role].get('/v1/payments?limit=1');
    const [{ id } = { id: '' }] = foreign.body.data as { id: string }[];
    expect(id).toBe(theirs.payment);
    const own = await world.target(mine);
    const endpoints = await as.get('/v1/webhook-endpoints');
    expect(endpoints.text).not.toContain(theirs.endpoint);
    if (role === 'client') expect(endpoints.text).toContain(own.endpoint);
    for (const path of [
      '/v1/payments',
      '/v1/payments?state=needs_review',
      '/v1/payments?limit=100',
      '/v1/reviews',
    ]) {
      const { status, text } = await as.get(path);
      expect([path, status, text.includes(own.payment), text.includes(theirs.payment)]).toEqual([
        path,
        200,
        true,
        false,
      ]);
    }
  });

  it('a cursor of one tenant opens nothing in another', async () => {
    await world.target(other);
    const { body } = await other.callers.client.get('/v1/payments?limit=1');
    expect(typeof body.next_cursor).toBe('string');
    const answer = await mine.callers.client.get(`/v1/payments?limit=1&cursor=${body.next_cursor as string}`);
    expect([answer.status, answer.body.code]).toEqual([400, 'cursor_invalid']);
  });

  it('the key "1" of two tenants is two payments, and neither leaves a trace of the other (ID-04)', async () => {
    const [a, b] = [await world.tenant(), await world.tenant()];
    const body = validCreate();
    const first = await a.callers.client.create(body, '1');
    const same = await b.callers.client.create(body, '1');
    const [c] = [await world.tenant()];
    const different = await c.callers.client.create({ ...body, amount: 2_000 }, '1');
    const made = [first, same, different];
    expect(made.map((answer) => answer.status)).toEqual([201, 201, 201]);
    expect(new Set(made.map((answer) => answer.body.id as string)).size).toBe(3);
    for (const answer of made) expect(answer.headers['idempotency-replayed']).toBeUndefined();
    const path = `/v1/payments/${first.body.id as string}`;
    for (const reply of [await b.callers.client.get(path), await b.callers.client.post(`${path}/cancel`)]) {
      expect([reply.status, reply.body.code]).toEqual([404, 'not_found']);
    }
    expect((await a.callers.client.get(path)).body).toMatchObject({ state: 'scheduled', version: 1 });
    expect((await b.callers.client.create(body, '1')).headers['idempotency-replayed']).toBe('true');
    const rows = await world.db.query(
      `SELECT p.tenant_id FROM payment p JOIN outbox o ON o.payment_id = p.id AND o.kind = 'start'
        WHERE p.idempotency_key = '1'`,
    );
    expect(rows).toHaveLength(3);
  });

  it('is the net that was meant', async () => {
    expect(world.rewritten.size > 0).toBe(net === 'row-level security alone');
    const [row] = await world.db.query<{ on: boolean }>(
      `SELECT relrowsecurity AND relforcerowsecurity AS on FROM pg_class WHERE relname = 'payment'`,
    );
    expect(row?.on).toBe(net !== 'the filter of the stores alone');
  });
});
