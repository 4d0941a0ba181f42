import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;
let auditor: Client;
let id: string;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database });
  client = await api.client();
  auditor = await api.person(client.tenant, { subject: 'iris', roles: ['auditor'] });
  id = (await client.create()).body.id as string;
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const entries = () =>
  db.query<{ actor: string; target: string; detail: string; tenant_id: string }>(
    `SELECT actor, target, detail, tenant_id FROM audit_log WHERE action = 'auditor_read' ORDER BY id`,
  );

describe('what an auditor reads', () => {
  it('stands in the audit log: one entry for each look, found or not', async () => {
    const paths = [`/v1/payments/${id}`, `/v1/payments/${id}/history`, '/v1/payments', '/v1/reviews'];
    const requests: unknown[] = [];
    for (const path of paths) {
      const answer = await auditor.get(path);
      expect([path, answer.status]).toEqual([path, 200]);
      requests.push(answer.headers['request-id']);
    }
    const absent = `pay_${'a'.repeat(32)}`;
    expect((await auditor.get(`/v1/reviews/${absent}`)).status).toBe(404);
    const written = await entries();
    expect(written.map((entry) => entry.target)).toEqual([id, id, 'v1/payments', 'v1/reviews', absent]);
    for (const { actor, tenant_id: of } of written)
      expect([actor, of]).toEqual(['person:iris', client.tenant]);
    expect(JSON.parse(written[1]?.detail ?? '')).toEqual({
      route: 'GET:/v1/payments/:id/history',
      request_id: requests[1],
    });
  });

  it('is written down also beside another role, and of other callers nothing is', async () => {
    const before = (await entries()).length;
    await client.get(`/v1/payments/${id}`);
    await (await api.person(client.tenant, { roles: ['operator'] })).get(`/v1/payments/${id}`);
    expect(await entries()).toHaveLength(before);
    const both = await api.person(client.tenant, { roles: ['operator', 'auditor'] });
    await both.get(`/v1/payments/${id}`);
    expect(await entries()).toHaveLength(before + 1);
  });

  it('is not shown when it cannot be written down', async () => {
    await db.query('REVOKE INSERT ON audit_log FROM payments_api');
    const answer = await auditor.get(`/v1/payments/${id}`);
    await db.query('GRANT INSERT ON audit_log TO payments_api');
    expect([answer.status, answer.body.code]).toEqual([500, 'internal']);
    expect(answer.text).not.toContain(id);
    expect((await auditor.get(`/v1/payments/${id}`)).status).toBe(200);
  });
});
