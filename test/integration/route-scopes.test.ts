import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiApp } from '../../src/app.factory.js';
import { LanesController } from '../../src/lanes/lanes.controller.js';
import { isDocumentationUrl } from '../../src/openapi-document.js';
import { PaymentsController } from '../../src/payments/payments.controller.js';
import { createLogger } from '../../src/platform/logger.js';
import { registryOf } from '../../src/providers/provider-registry.js';
import { ResolutionsController } from '../../src/review/resolutions.controller.js';
import { ReviewsController } from '../../src/review/reviews.controller.js';
import { WebhookEndpointsController } from '../../src/webhooks/outgoing/webhook-endpoints.controller.js';
import { startTestApi, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { nameOf, routesOf, type Route } from '../support/routes.js';

/**
 * Who may call what, written down once more: the routes of the running application are compared with
 * this table, and each is called in each role.
 */
const SCOPE_OF_ROUTE: Readonly<Record<string, string>> = {
  'POST /v1/payments': 'payments:create',
  'GET /v1/payments': 'payments:read',
  'GET /v1/payments/:id': 'payments:read',
  'GET /v1/payments/:id/history': 'payments:read',
  'POST /v1/payments/:id/cancel': 'payments:cancel',
  'POST /v1/payments/:id/reschedule': 'payments:update',
  'POST /v1/payments/:id/hold': 'payments:operate',
  'POST /v1/payments/:id/release': 'payments:operate',
  'POST /v1/payments/:id/escalate': 'payments:operate',
  'POST /v1/payments/:id/resolutions': 'payments:resolve',
  'POST /v1/payments/:id/resolutions/:rid/approve': 'payments:resolve',
  'GET /v1/reviews': 'payments:read',
  'GET /v1/reviews/:payment_id': 'payments:read',
  'POST /v1/reviews/:payment_id/own': 'payments:resolve',
  'POST /v1/reviews/:payment_id/close': 'payments:resolve',
  'GET /v1/lanes': 'lanes:operate',
  'POST /v1/lanes/:provider/pause': 'lanes:operate',
  'POST /v1/lanes/:provider/resume': 'lanes:operate',
  'POST /v1/webhook-endpoints': 'webhooks:manage',
  'GET /v1/webhook-endpoints': 'webhooks:manage',
  'GET /v1/webhook-endpoints/:id': 'webhooks:manage',
  'DELETE /v1/webhook-endpoints/:id': 'webhooks:manage',
  'POST /v1/webhook-endpoints/:id/enable': 'webhooks:manage',
  'POST /v1/webhook-endpoints/:id/disable': 'webhooks:manage',
  'POST /v1/webhook-endpoints/:id/rotate-secret': 'webhooks:manage',
  'GET /v1/webhook-endpoints/:id/deliveries': 'webhooks:manage',
  'POST /v1/webhook-endpoints/:id/resend': 'webhooks:manage',
  'POST /v1/webhook-endpoints/:id/deliveries/:event/resend': 'webhooks:manage',
};
/** Its caller is a provider, which has no credential of ours: the signature is verified over the raw bytes. */
const SIGNED = ['POST /v1/webhooks/:provider'];

const SCOPES_OF_CALLER: Readonly<Record<string, readonly string[]>> = {
  client: ['payments:create', 'payments:read', 'payments:cancel', 'payments:update', 'webhooks:manage'],
  client_readonly: ['payments:read'],
  operator: ['payments:read', 'payments:cancel', 'payments:operate', 'payments:resolve', 'lanes:operate'],
  approver: ['payments:read', 'payments:resolve'],
  auditor: ['payments:read'],
  // Administrators keep keys and limits by the command line and a database role: no route is theirs.
  admin: [],
  'a role that nobody knows': [],
  'no role': [],
};
const CALLERS = Object.keys(SCOPES_OF_CALLER);

let db: TestDatabase;
let api: TestApi;
const callers = new Map<string, Client>();

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  const tenant = await seedTenant(db.database);
  callers.set('client', await api.client({ tenant }));
  callers.set('client_readonly', await api.client({ tenant, scopes: ['payments:read'] }));
  for (const role of ['operator', 'approver', 'auditor', 'admin', 'constructor']) {
    const name = role === 'constructor' ? 'a role that nobody knows' : role;
    callers.set(name, await api.person(tenant, { roles: [role] }));
  }
  callers.set('no role', await api.person(tenant, { roles: [] }));
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const ours = (): readonly Route[] => routesOf(api.app).filter(({ url }) => !isDocumentationUrl(url));

function call(route: Route, as: Client): Promise<ApiAnswer> {
  const path = route.url.replace(/:(id|payment_id)/, `pay_${'a'.repeat(32)}`).replace(/:\w+/g, 'x');
  if (route.method === 'DELETE') return as.delete(path);
  return route.method === 'GET' ? as.get(path) : as.post(path);
}

describe('the routes of the running application', () => {
  it('are those of the table, and the documentation, and no others', () => {
    const known = [...Object.keys(SCOPE_OF_ROUTE), ...SIGNED];
    expect(ours().map(nameOf).sort()).toEqual(known.sort());
    const others = routesOf(api.app).filter(({ url }) => isDocumentationUrl(url));
    expect(others.every(({ method }) => method === 'GET')).toBe(true);
    expect(others.map(({ url }) => url)).toContain('/openapi.json');
  });

  it.each(CALLERS)('open to %s what the table says, and answer 403 to the rest', async (name) => {
    const opened: string[] = [];
    for (const route of ours().filter((each) => !SIGNED.includes(nameOf(each)))) {
      const answer = await call(route, callers.get(name) as Client);
      const isRefused = answer.status === 403 && answer.body.code === 'forbidden';
      expect(answer.status, `${nameOf(route)}: ${answer.text}`).not.toBe(401);
      if (!isRefused) opened.push(nameOf(route));
    }
    const scopes = SCOPES_OF_CALLER[name] ?? [];
    const expected = Object.keys(SCOPE_OF_ROUTE).filter((route) =>
      scopes.includes(SCOPE_OF_ROUTE[route] ?? ''),
    );
    expect(opened.sort()).toEqual(expected.sort());
  });

  it('answer one and the same 401 to a caller without a credential, and HEAD no more than GET', async () => {
    const answers: unknown[] = [];
    for (const route of ours().filter((each) => !SIGNED.includes(nameOf(each)))) {
      const answer = await call(route, api.as(null));
      answers.push({ ...answer.body, request_id: '', instance: '', status: answer.status });
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 401, code: 'unauthenticated' });
    for (const { url } of ours().filter(({ method }) => method === 'GET')) {
      const head = await fetch(api.url + url.replace(/:\w+/, `pay_${'a'.repeat(32)}`), { method: 'HEAD' });
      expect([url, head.status]).toEqual([url, 401]);
    }
  });

  it('leave the signed one to the signature: no credential helps', async () => {
    for (const as of [api.as(null), callers.get('operator') as Client, callers.get('client') as Client]) {
      const answer = await as.post('/v1/webhooks/simulated', { body: {} });
      expect([401, 404]).toContain(answer.status);
    }
  });

  it('are all in the log when a scope is missing: one security event each, with the scope', async () => {
    const from = api.logLines.length;
    await callers.get('client_readonly')?.post(`/v1/payments/pay_${'a'.repeat(32)}/cancel`);
    const [line] = api.logLines.slice(from).filter((text) => text.includes('"event":"scope_refused"'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 'warn', code: 'payments:cancel' });
  });
});

describe('a route of ours that loses its declaration', () => {
  const METHODS: readonly (readonly [string, object])[] = [
    PaymentsController, ReviewsController, ResolutionsController, LanesController,
    WebhookEndpointsController,
  ].flatMap(({ prototype }) =>
    Object.getOwnPropertyNames(prototype)
      .filter((name) => name !== 'constructor' && Reflect.hasMetadata('path', prototype[name as keyof typeof prototype] as object))
      .map((name) => [name, prototype[name as keyof typeof prototype] as object] as const),
  ); // prettier-ignore

  it('is what the application consists of', () => {
    expect(METHODS).toHaveLength(Object.keys(SCOPE_OF_ROUTE).length);
  });

  it.each(METHODS)('%s stops the start-up with a sentence', async (_name, handler) => {
    const config = '__fastify_route_config__';
    const declared: unknown = Reflect.getMetadata(config, handler);
    expect(declared).toMatchObject({ access: { kind: 'scope' } });
    Reflect.defineMetadata(config, {}, handler);
    try {
      const log = createLogger({ level: 'silent', name: 'api' });
      const database = db.as('payments_api');
      const parts = { config: api.config, keys: api.keys, log, database, relayDatabase: database };
      const start = createApiApp({ ...parts, providers: registryOf([]), outbox: { nudge: () => undefined } });
      await expect(start).rejects.toThrow(/^Route (GET|POST|DELETE) \/v1\/.* declares no scope\./);
    } finally {
      Reflect.defineMetadata(config, declared, handler);
    }
  });
});
