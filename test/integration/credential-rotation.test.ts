import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listApiKeys } from '../../src/auth/api-key-list.store.js';
import { createApiKey, revokeApiKey, rotateApiKey, type MadeApiKey } from '../../src/auth/api-key.store.js';
import { Authenticator } from '../../src/auth/authenticator.js';
import type { KeySet, KeysFile } from '../../src/config/key-file.js';
import type { Database } from '../../src/persistence/database.js';
import { startTestApi, testKeys, type TestApi } from '../support/api.js';
import { seedTenant } from '../support/builders.js';
import { newKeySet } from '../support/ciphers.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/** What a running process sees of a key file that is being rotated. */
let pepper: KeySet;
let keys: KeysFile;
let db: TestDatabase;
let api: TestApi;
let admin: Database;

beforeAll(async () => {
  db = await createTestDatabase();
  pepper = newKeySet('pepper-1');
  const live: KeySet = {
    get active() {
      return pepper.active;
    },
    get keys() {
      return pepper.keys;
    },
  };
  keys = { ...testKeys(), pepper: live };
  api = await startTestApi({ database: db.database, keys });
  admin = db.as('payments_admin', 'keys', 2);
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

const rotate = (id: string): Promise<MadeApiKey> =>
  admin.transaction((tx) => rotateApiKey(tx, keys, { id, mode: 'test' }));

/** Clients that ask without a pause, each with the newest key that its tenant handed out. */
class Load {
  readonly refused: string[] = [];
  asked = 0;
  private stopping = false;
  private readonly done: Promise<unknown>;

  constructor(
    private readonly keyOf: () => string,
    clients = 6,
  ) {
    this.done = Promise.all(Array.from({ length: clients }, () => this.ask()));
  }

  private async ask(): Promise<void> {
    while (!this.stopping) {
      const answer = await api.as(this.keyOf()).get('/v1/payments?limit=1');
      this.asked++;
      if (answer.status !== 200) this.refused.push(answer.text);
    }
  }

  /** Resolves when every client has had another answer: none holds an older key any more. */
  async turn(): Promise<void> {
    const until = this.asked + 24;
    await expect.poll(() => this.asked, { interval: 5, timeout: 20_000 }).toBeGreaterThan(until);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await this.done;
  }
}

describe('under load', () => {
  it('keys and then the pepper are rotated without a refusal, and the old pepper is needed by nobody', async () => {
    const tenantId = await seedTenant(db.database);
    const first = await createApiKey(admin, keys, {
      ...{ tenantId, name: 'rotated', mode: 'test' },
      scopes: ['payments:read'],
    });
    let current = first;
    const load = new Load(() => current.text);
    await load.turn();
    for (let round = 0; round < 4; round++) {
      // The second round takes another pepper: new keys stand under it, older ones go on.
      if (round === 1) {
        const next = newKeySet('pepper-2');
        pepper = { active: next.active, keys: { ...pepper.keys, ...next.keys } };
      }
      const old = current;
      current = await rotate(old.id);
      await load.turn();
      expect(await revokeApiKey(admin, old.id)).toMatchObject({ kind: 'revoked' });
      await load.turn();
    }
    const under = async (pepperId: string) =>
      (await listApiKeys(admin, { tenantId: null, pepperId, isAll: false })).keys.map((key) => key.id);
    expect(await under('pepper-1')).toEqual([]);
    expect(await under('pepper-2')).toEqual([current.id]);
    pepper = { active: 'pepper-2', keys: { 'pepper-2': pepper.keys['pepper-2'] ?? '' } };
    await load.turn();
    await load.stop();
    expect(load.refused).toEqual([]);
    expect(load.asked).toBeGreaterThan(200);
    const fresh = new Authenticator(db.as('payments_api', 'fresh', 1), keys.pepper, 'test');
    expect((await fresh.authenticate(`Bearer ${current.text}`)).kind).toBe('authenticated');
    expect((await fresh.authenticate(`Bearer ${first.text}`)).kind).toBe('refused');
  });

  it('a revoked key is refused by every process 5 s later, on a clock of the test, and its sibling by none', async () => {
    const tenantId = await seedTenant(db.database);
    const revoked = await createApiKey(admin, keys, {
      ...{ tenantId, name: 'revoked', mode: 'test' },
      scopes: ['payments:read'],
    });
    const sibling = await rotate(revoked.id);
    let nowMs = 0;
    const reader = db.as('payments_api', 'processes', 4);
    const processes = Array.from(
      { length: 4 },
      () => new Authenticator(reader, keys.pepper, 'test', () => nowMs),
    );
    const kinds = async (key: MadeApiKey) =>
      new Set((await Promise.all(processes.flatMap((each) =>
        Array.from({ length: 10 }, () => each.authenticate(`Bearer ${key.text}`)),
      ))).map((answer) => answer.kind)); // prettier-ignore
    let revokedAtMs = Number.POSITIVE_INFINITY;
    for (let step = 0; step < 40; step++) {
      nowMs += 250;
      // Just after every process has read the key: its copy is as young as it can be.
      if (step === 1) {
        revokedAtMs = nowMs;
        await revokeApiKey(admin, revoked.id);
      }
      expect(await kinds(sibling)).toEqual(new Set(['authenticated']));
      const seen = await kinds(revoked);
      if (nowMs < revokedAtMs) expect(seen).toEqual(new Set(['authenticated']));
      if (nowMs >= revokedAtMs + 5_000) expect(seen).toEqual(new Set(['refused']));
    }
  });

  it('a key under a pepper that this process has not read yet makes it read the key file once more', async () => {
    const tenantId = await seedTenant(db.database);
    const made = await createApiKey(admin, keys, {
      ...{ tenantId, name: 'new', mode: 'test' },
      scopes: ['payments:read'],
    });
    let known: Record<string, string> = {};
    const behind: KeySet = {
      active: 'none',
      get keys() {
        return known;
      },
      refresh: () => void (known = { ...pepper.keys }),
    };
    const process = new Authenticator(db.as('payments_api', 'behind', 1), behind, 'test');
    expect((await process.authenticate(`Bearer ${made.text}`)).kind).toBe('authenticated');
  });
});
