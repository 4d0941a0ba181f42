import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from 'undici';
import { Database } from '../../src/persistence/database.js';
import { PROBLEMS } from '../../src/domain/domain-error.js';
import { stateMachineDocument } from '../../src/domain/state-machine-document.js';
import { openApiDocument } from '../../src/openapi-document.js';
import { startTestApi, type TestApi } from '../support/api.js';

let database: Database;
let api: TestApi;

beforeAll(async () => {
  // The document is made of routes and schemas: no database is asked.
  database = new Database({ url: 'postgres://127.0.0.1:9/none', poolSize: 1, applicationName: 'none' });
  api = await startTestApi({ database });
});
afterAll(async () => {
  await api.close();
  await database.close();
});

const committed = (name: string): string =>
  readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

interface Operation {
  readonly operationId: string;
  readonly security: unknown;
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly examples?: object }>> }>
  >;
}
const operations = (): readonly (readonly [string, Operation])[] =>
  Object.entries(openApiDocument(api.app).paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Operation>).map(
      ([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const,
    ),
  );

describe('the committed pages', () => {
  it('say what the code does: openapi.json (run `npm run docs` after a change)', () => {
    expect(JSON.parse(committed('openapi.json'))).toEqual(
      JSON.parse(JSON.stringify(openApiDocument(api.app))),
    );
  });

  it('say what the transition table says: state-machine.md (run `npm run docs` after a change)', () => {
    expect(committed('state-machine.md')).toBe(stateMachineDocument());
  });
});

describe('the document', () => {
  it('is OpenAPI 3.1 and served to anybody, as are its pages', async () => {
    const answer = await request(`${api.url}/openapi.json`);
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    expect(await answer.body.json()).toMatchObject({ openapi: '3.1.0', info: { title: 'Payments' } });
    for (const path of ['/docs', '/docs/swagger-ui.css', '/docs/swagger-ui-init.js']) {
      const page = await request(api.url + path);
      await page.body.dump();
      expect([path, page.statusCode]).toEqual([path, 200]);
    }
  });

  it('has pages that run their own scripts only, and no script in their text that such a policy would stop', async () => {
    const page = await request(`${api.url}/docs`);
    const html = await page.body.text();
    expect(page.headers['content-security-policy']).toContain("script-src 'self';");
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)[^>]*>|\son\w+=/i);
    expect([...html.matchAll(/(?:src|href)="(https?:)?\/\//g)]).toEqual([]);
    const other = await request(`${api.url}/v1/payments`);
    await other.body.dump();
    expect(other.headers['content-security-policy']).toContain("default-src 'none'");
  });

  it('has every route of the router and no other', () => {
    expect(
      operations()
        .map(([name]) => name)
        .sort(),
    ).toEqual([
      'DELETE /v1/webhook-endpoints/{id}',
      'GET /v1/lanes',
      'GET /v1/payments',
      'GET /v1/payments/{id}',
      'GET /v1/payments/{id}/history',
      'GET /v1/reviews',
      'GET /v1/reviews/{payment_id}',
      'GET /v1/webhook-endpoints',
      'GET /v1/webhook-endpoints/{id}',
      'GET /v1/webhook-endpoints/{id}/deliveries',
      'POST /v1/lanes/{provider}/pause',
      'POST /v1/lanes/{provider}/resume',
      'POST /v1/payments',
      'POST /v1/payments/{id}/cancel',
      'POST /v1/payments/{id}/escalate',
      'POST /v1/payments/{id}/hold',
      'POST /v1/payments/{id}/release',
      'POST /v1/payments/{id}/reschedule',
      'POST /v1/payments/{id}/resolutions',
      'POST /v1/payments/{id}/resolutions/{rid}/approve',
      'POST /v1/reviews/{payment_id}/close',
      'POST /v1/reviews/{payment_id}/own',
      'POST /v1/webhook-endpoints',
      'POST /v1/webhook-endpoints/{id}/deliveries/{event}/resend',
      'POST /v1/webhook-endpoints/{id}/disable',
      'POST /v1/webhook-endpoints/{id}/enable',
      'POST /v1/webhook-endpoints/{id}/resend',
      'POST /v1/webhook-endpoints/{id}/rotate-secret',
      'POST /v1/webhooks/{provider}',
    ]);
    for (const [name, { security }] of operations())
      // Providers sign their events instead.
      expect([name, security]).toEqual([name, name.includes('/webhooks/') ? [] : [{ bearer: [] }]]);
  });

  it('gives each refusal under its own status, as a problem with an example', () => {
    for (const [name, { responses }] of operations()) {
      for (const [status, { content }] of Object.entries(responses)) {
        if (Number(status) < 400) continue;
        const examples = content?.['application/problem+json']?.examples ?? {};
        expect([name, status, Object.keys(examples).length > 0]).toEqual([name, status, true]);
        for (const code of Object.keys(examples)) {
          expect([code, PROBLEMS[code as keyof typeof PROBLEMS].status]).toEqual([code, Number(status)]);
        }
      }
    }
  });
});
