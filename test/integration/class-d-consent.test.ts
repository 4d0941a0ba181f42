import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registryOf } from '../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;

beforeAll(async () => {
  db = await createTestDatabase();
  const options = { baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_test' };
  const profiles = ['A', 'B', 'C', 'D', 'T'] as const;
  const providers = registryOf(profiles.map((profile) => new SimulatedProvider({ ...options, profile })));
  api = await startTestApi({ database: db.database, providers });
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

async function consent(tenant: string, maxMinor: bigint | null): Promise<void> {
  await db.query('UPDATE tenant SET allows_class_d = $2, class_d_max_minor = $3 WHERE id = $1', [
    tenant,
    maxMinor !== null,
    maxMinor,
  ]);
}
async function created(client: Client, members: Record<string, unknown>, key?: string): Promise<unknown[]> {
  const answer = await client.create({ provider: 'simulated_d', ...members }, key);
  return answer.status === 422 ? [422, answer.body.code] : [answer.status];
}
async function rows(tenant: string): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `SELECT (SELECT count(*) FROM payment WHERE tenant_id = $1)::integer
          + (SELECT count(*) FROM payment_transition WHERE tenant_id = $1)::integer AS n`,
    [tenant],
  );
  return row?.n ?? -1;
}

describe('a provider that can neither recognise a repeat nor be asked', () => {
  it('is refused to a tenant that has not agreed, and nothing is stored', async () => {
    const client = await api.client();
    expect(await created(client, {})).toEqual([422, 'provider_not_allowed']);
    expect(await rows(client.tenant)).toBe(0);
  });

  it('is open to a tenant that agreed, up to its cap and not one unit more', async () => {
    const client = await api.client();
    await consent(client.tenant, 5_000n);
    expect(await created(client, { amount: 5_000 })).toEqual([201]);
    expect(await created(client, { amount: 5_001 })).toEqual([422, 'amount_above_limit']);
    expect(await rows(client.tenant)).toBe(2);
  });

  it.each(['simulated', 'simulated_b', 'simulated_c', 'simulated_t'])(
    'is the only one that needs it: %s does not',
    async (provider) => {
      const client = await api.client();
      expect(await created(client, { provider, amount: 900_000 })).toEqual([201]);
    },
  );

  it('keeps what was accepted: a repeat after the consent ended is a replay', async () => {
    const client = await api.client();
    await consent(client.tenant, 5_000n);
    const key = unique('order');
    const execute_at = new Date(Date.now() + 86_400_000).toISOString();
    expect(await created(client, { execute_at }, key)).toEqual([201]);
    await consent(client.tenant, null);
    expect(await created(client, { execute_at }, key)).toEqual([200]);
    expect(await created(client, { execute_at })).toEqual([422, 'provider_not_allowed']);
  });

  it('cannot be agreed to without a cap, nor with one of nothing', async () => {
    const { tenant } = await api.client();
    for (const cap of ['NULL', '0', '-1']) {
      await expect(
        db.query(`UPDATE tenant SET allows_class_d = true, class_d_max_minor = ${cap} WHERE id = $1`, [
          tenant,
        ]),
      ).rejects.toThrow(/tenant_class_d_capped/);
    }
  });
});
