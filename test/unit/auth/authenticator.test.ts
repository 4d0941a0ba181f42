import { describe, expect, it } from 'vitest';
import { apiKeyDigest, newApiKey } from '../../../src/auth/api-key.js';
import { Authenticator, KEY_CACHE_LIFE_MS } from '../../../src/auth/authenticator.js';
import type { Rows, Sql } from '../../../src/persistence/database.js';

const pepper = { active: 'p1', keys: { p1: Buffer.alloc(32, 1).toString('base64') } };
const bytes = Buffer.alloc(32, 1);

/** A store with one key; counts its reads and answers when it is let. */
class OneKey implements Sql {
  reads = 0;
  row: Record<string, unknown> | null;
  wait: Promise<void> = Promise.resolve();
  constructor(readonly key = newApiKey('test')) {
    this.row = {
      id: key.parts.id,
      tenant_id: 'tenant-a',
      pseudonym: 't-1',
      scopes: ['payments:read'],
      digest: apiKeyDigest(key.parts, bytes),
      pepper_key_id: 'p1',
      expires_in_ms: 1e9,
    };
  }
  async query<R>(_statement: unknown, values: readonly unknown[] = []): Promise<Rows<R>> {
    this.reads++;
    const row = this.row !== null && values[0] === this.row['id'] ? this.row : null;
    await this.wait;
    return { rows: (row === null ? [] : [row]) as R[], rowCount: row === null ? 0 : 1 };
  }
}

describe('the authenticator', () => {
  it('says who is calling, by the key alone', async () => {
    const store = new OneKey();
    const answer = await new Authenticator(store, pepper, 'test').authenticate(`Bearer ${store.key.text}`);
    expect(answer).toEqual({
      kind: 'authenticated',
      principal: {
        tenantId: 'tenant-a',
        tenantRef: 't-1',
        scopes: new Set(['payments:read']),
        kind: 'api_key',
        subject: store.key.parts.id,
        hasSecondFactor: false,
        isAuditor: false,
        actor: `api_key:${store.key.parts.id}`,
      },
    });
  });

  it('refuses text that is no key, or one of the other mode, without a read', async () => {
    const store = new OneKey();
    const authenticator = new Authenticator(store, pepper, 'test');
    const reasonOf = async (header: string | undefined) => {
      const answer = await authenticator.authenticate(header);
      return answer.kind === 'refused' ? answer.reason : answer.kind;
    };
    expect(await reasonOf(undefined)).toBe('missing');
    for (const header of ['', 'Bearer', 'Bearer ', 'Bearer x', store.key.text, `Basic ${store.key.text}`]) {
      expect(await reasonOf(header)).toBe('malformed');
    }
    expect(await reasonOf(`Bearer ${newApiKey('live').text}`)).toBe('wrong_mode');
    expect(store.reads).toBe(0);
    expect(await reasonOf(`Bearer ${newApiKey('test').text}`)).toBe('unknown');
    expect(store.reads).toBe(1);
  });

  it('refuses the right id when the stored digest is of another secret', async () => {
    const store = new OneKey();
    if (store.row) store.row = { ...store.row, digest: apiKeyDigest(newApiKey('test').parts, bytes) };
    const answer = await new Authenticator(store, pepper, 'test').authenticate(`Bearer ${store.key.text}`);
    expect(answer).toEqual({ kind: 'refused', reason: 'wrong_secret', keyId: store.key.parts.id });
  });

  it('reads a key once for all who wait for it, and again when its copy is 5 s old', async () => {
    const store = new OneKey();
    let nowMs = 0;
    const authenticator = new Authenticator(store, pepper, 'test', () => nowMs);
    const ask = () => authenticator.authenticate(`Bearer ${store.key.text}`);
    await Promise.all([ask(), ask(), ask()]);
    nowMs = KEY_CACHE_LIFE_MS - 1;
    await ask();
    expect(store.reads).toBe(1);
    nowMs = KEY_CACHE_LIFE_MS;
    await ask();
    expect(store.reads).toBe(2);
  });

  it('counts the age of a copy from before it was read: a slow read does not prolong a key', async () => {
    const store = new OneKey();
    let nowMs = 0;
    const authenticator = new Authenticator(store, pepper, 'test', () => nowMs);
    let answerNow: () => void = () => undefined;
    store.wait = new Promise((resolve) => (answerNow = resolve));
    const asked = authenticator.authenticate(`Bearer ${store.key.text}`);
    nowMs = 3_000;
    store.row = null;
    answerNow();
    expect((await asked).kind).toBe('authenticated');
    nowMs = KEY_CACHE_LIFE_MS;
    expect((await authenticator.authenticate(`Bearer ${store.key.text}`)).kind).toBe('refused');
  });

  it('does not remember that a key was unknown: a new one works at once', async () => {
    const store = new OneKey();
    const { row } = store;
    store.row = null;
    const authenticator = new Authenticator(store, pepper, 'test');
    expect((await authenticator.authenticate(`Bearer ${store.key.text}`)).kind).toBe('refused');
    store.row = row;
    expect((await authenticator.authenticate(`Bearer ${store.key.text}`)).kind).toBe('authenticated');
  });
});
