import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DataKeys } from '../../src/encryption/data-keys.js';
import { DestinationCipher } from '../../src/encryption/destination-cipher.js';
import { DestinationDigests } from '../../src/encryption/destination-digest.js';
import { KeyFileEncryption } from '../../src/encryption/key-encryption.js';
import { KeyRing } from '../../src/encryption/key-ring.js';
import { DataKeyDeleted, NotAuthentic, UnknownKey } from '../../src/encryption/unreadable.js';
import { StorageUnavailable } from '../../src/persistence/database-errors.js';
import type { Sql } from '../../src/persistence/database.js';
import { unique } from '../support/builders.js';
import { directCipher, newKeySet } from '../support/ciphers.js';
import { armedFor, EngineRig, live, pair } from '../support/engine.js';
import type { TappedDatabase } from '../support/tapped-database.js';

const keys = { encryption: newKeySet('kek-1'), digest: newKeySet('digest-1') };
const SEPTEMBER = Date.UTC(2026, 8, 30, 23, 59, 59);
const OCTOBER = Date.UTC(2026, 9, 1);
let rig: EngineRig;
let sql: TappedDatabase;

beforeAll(async () => {
  rig = await EngineRig.start();
  sql = rig.tapped('data-keys');
});
afterAll(() => rig.stop());

interface Clocks {
  wallMs: number;
  monotonicMs: number;
}

/** A process of its own: nothing in memory yet. */
function processOn(
  on: Sql,
  { clocks = { wallMs: SEPTEMBER, monotonicMs: 0 }, set = keys.encryption } = {},
): DestinationCipher {
  const ring = new KeyRing(set);
  return new DestinationCipher({
    keys: new DataKeys({
      kek: new KeyFileEncryption(ring),
      direct: ring,
      sqlOf: () => on,
      wallMs: () => clocks.wallMs,
      monotonicMs: () => clocks.monotonicMs,
    }),
    digests: new DestinationDigests(keys.digest),
  });
}

const at = (tenant: string, paymentId = 'pay_1') => ({ tenant, paymentId, field: 'destination' as const });
const asked = (): number => [...sql.asked.values()].reduce((sum, n) => sum + n, 0);
const keysOf = (tenant: string) =>
  rig.db.query<{ id: string; month: string; kek_id: string }>(
    `SELECT id, month, kek_id FROM data_key WHERE tenant_id = $1 ORDER BY month`,
    [tenant],
  );

describe('a data key', () => {
  it('of one tenant and month is one, however many processes make it at once', async () => {
    const pool = rig.tapped('many', 20);
    for (let round = 0; round < 5; round++) {
      const tenant = unique('tenant');
      const processes = Array.from({ length: 20 }, () => processOn(pool));
      const sealed = await Promise.all(
        processes.map((one) => one.encrypt({ ...at(tenant), plaintext: 'acct_1' })),
      );
      expect(new Set(sealed.map((s) => s.keyId)).size).toBe(1);
      expect(await keysOf(tenant)).toEqual([{ id: sealed[0]?.keyId, month: '2026-09', kek_id: 'kek-1' }]);
      for (const s of sealed) expect(await processOn(pool).decrypt({ ...at(tenant), ...s })).toBe('acct_1');
    }
    expect(pool.asked.get('data-key-insert')).toBeGreaterThan(5);
  });

  it('is another one in the next month, and both months open', async () => {
    const tenant = unique('tenant');
    const clocks = { wallMs: SEPTEMBER, monotonicMs: 0 };
    const cipher = processOn(sql, { clocks });
    const old = await cipher.encrypt({ ...at(tenant), plaintext: 'september' });
    clocks.wallMs = OCTOBER;
    const young = await cipher.encrypt({ ...at(tenant), plaintext: 'october' });
    expect((await keysOf(tenant)).map((k) => [k.id, k.month])).toEqual([
      [old.keyId, '2026-09'],
      [young.keyId, '2026-10'],
    ]);
    const other = processOn(sql);
    expect(await other.decrypt({ ...at(tenant), ...old })).toBe('september');
    expect(await other.decrypt({ ...at(tenant), ...young })).toBe('october');
  });

  it('costs no statement once it is in memory, and one statement for many tenants when it is not', async () => {
    const tenants = Array.from({ length: 200 }, () => unique('tenant'));
    const writer = processOn(sql);
    const sealed = await Promise.all(
      tenants.map((tenant) => writer.encrypt({ ...at(tenant), plaintext: tenant })),
    );
    const before = asked();
    await Promise.all(tenants.map((tenant) => writer.encrypt({ ...at(tenant), plaintext: 'more' })));
    expect(asked()).toBe(before);
    const reader = processOn(sql);
    const open = () => Promise.all(sealed.map((s, i) => reader.decrypt({ ...at(tenants[i] ?? ''), ...s })));
    expect(await open()).toEqual(tenants);
    expect(asked()).toBe(before + 1);
    expect(await open()).toEqual(tenants);
    expect(asked()).toBe(before + 1);
  });

  it('leaves rows open that were sealed under the key file itself', async () => {
    const row = await directCipher(keys).encrypt({ ...at('tenant'), plaintext: 'acct_old' });
    expect(row.keyId).toBe('kek-1');
    expect(await processOn(sql).decrypt({ ...at('tenant'), ...row })).toBe('acct_old');
  });

  it('opens nothing in a row that was moved to another tenant', async () => {
    const [a, b] = [unique('tenant'), unique('tenant')];
    const cipher = processOn(sql);
    const sealed = await cipher.encrypt({ ...at(a), plaintext: 'acct_1' });
    const own = await cipher.encrypt({ ...at(b), plaintext: 'acct_2' });
    await expect(cipher.decrypt({ ...at(b), ...sealed })).rejects.toThrow(DataKeyDeleted);
    await expect(cipher.decrypt({ ...at(b), ...sealed, keyId: own.keyId })).rejects.toThrow(NotAuthentic);
    await expect(cipher.decrypt({ ...at(a), ...sealed, keyId: own.keyId })).rejects.toThrow(DataKeyDeleted);
  });

  it.each([
    ['tenant_id', `tenant_id = 'moved-' || id`],
    ['month', `month = '2031-01'`],
    ['wrapped', `wrapped = set_byte(wrapped, 40, 1 # get_byte(wrapped, 40))`],
  ])('whose row was changed in %s opens nothing', async (column, change) => {
    const tenant = unique('tenant');
    const sealed = await processOn(sql).encrypt({ ...at(tenant), plaintext: 'acct_1' });
    await rig.db.query(`UPDATE data_key SET ${change} WHERE tenant_id = $1`, [tenant]);
    const now = column === 'tenant_id' ? `moved-${sealed.keyId}` : tenant;
    await expect(processOn(sql).decrypt({ ...at(now), ...sealed })).rejects.toThrow(NotAuthentic);
  });

  it('needs the key-encryption key that wrapped it', async () => {
    const tenant = unique('tenant');
    const sealed = await processOn(sql).encrypt({ ...at(tenant), plaintext: 'acct_1' });
    const without = processOn(sql, { set: newKeySet('kek-2') });
    await expect(without.decrypt({ ...at(tenant), ...sealed })).rejects.toThrow(UnknownKey);
  });

  it('that was deleted leaves memory within a minute of use, and five minutes without', async () => {
    const [used, unused] = [unique('tenant'), unique('tenant')];
    const clocks: Clocks = { wallMs: SEPTEMBER, monotonicMs: 0 };
    const cipher = processOn(sql, { clocks });
    const rows = await Promise.all(
      [used, unused].map(async (tenant) => ({ ...at(tenant), ...(await cipher.encrypt({ ...at(tenant), plaintext: 'x' })) })),
    ); // prettier-ignore
    for (const row of rows) await cipher.decrypt(row);
    await rig.db.query(`DELETE FROM data_key WHERE tenant_id = ANY ($1)`, [[used, unused]]);
    clocks.monotonicMs = 59_000;
    for (const row of rows) expect(await cipher.decrypt(row)).toBe('x');
    clocks.monotonicMs = 61_000;
    // Used once more from memory, while it is read again beside.
    const [first, second] = rows as [(typeof rows)[0], (typeof rows)[0]];
    expect(await cipher.decrypt(first)).toBe('x');
    await expect
      .poll(() => cipher.decrypt(first).catch((error: unknown) => error))
      .toBeInstanceOf(DataKeyDeleted);
    clocks.monotonicMs = 301_000;
    await expect(cipher.decrypt(second)).rejects.toThrow(DataKeyDeleted);
  });

  it('that cannot be read says so as a fault of storage, and is read again by the next call', async () => {
    const tenant = unique('tenant');
    const sealed = await processOn(sql).encrypt({ ...at(tenant), plaintext: 'acct_1' });
    const cipher = processOn(sql);
    const away = sql.tap('data-keys-find', () => Promise.reject(new StorageUnavailable('away')));
    await expect(cipher.decrypt({ ...at(tenant), ...sealed })).rejects.toThrow(StorageUnavailable);
    away();
    expect(await cipher.decrypt({ ...at(tenant), ...sealed })).toBe('acct_1');
  });
});

describe('a payment whose data key', () => {
  const engineWith = (cipher: DestinationCipher) =>
    rig.engine({
      cipher: {
        openDestination: (of) => cipher.openDestination(of),
        sealParameters: (of) => cipher.sealParameters(of),
        openParameters: (of) => cipher.openParameters(of),
      },
    });

  it('was deleted is held when it is due, under a code of its own, and nothing is sent', async () => {
    const payment = await rig.pay({ cipher: processOn(sql) });
    await rig.db.query(`DELETE FROM data_key WHERE id = $1`, [payment.destination_key_id]);
    const one = await engineWith(processOn(sql));
    const both = pair(one, payment);
    expect(await both.begin).toMatchObject({ kind: 'held' });
    expect(await both.submit).toMatchObject({ kind: 'held' });
    const [row] = await rig.db.query(
      `SELECT cause, detail::jsonb ->> 'code' AS code FROM payment_transition WHERE payment_id = $1 AND seq = 2`,
      [payment.id],
    );
    expect(row).toEqual({ cause: 'prepare_failed', code: 'destination_key_deleted' });
    expect((await rig.simulator.effects(payment.id)).count).toBe(0);
    expect(one.provider.submits).toEqual([]);
  });

  it('cannot be read for a moment is not held: it is paid when the key can be read', async () => {
    const payment = await rig.pay({ cipher: processOn(sql) });
    const one = await engineWith(processOn(sql));
    const away = sql.tap('data-keys-find', () => Promise.reject(new StorageUnavailable('away')));
    await expect(one.services.begin.beginSubmission(armedFor(payment))).rejects.toThrow(StorageUnavailable);
    expect(await rig.state(payment.id)).toBe('scheduled');
    away();
    expect(await live(one, payment)).toBe('succeeded');
  });
});

describe('row-level security of data keys', () => {
  const cipherAs = (sqlOf: (tenant: string) => Sql): DestinationCipher => {
    const ring = new KeyRing(keys.encryption);
    return new DestinationCipher({
      keys: new DataKeys({ kek: new KeyFileEncryption(ring), direct: ring, sqlOf }),
      digests: new DestinationDigests(keys.digest),
    });
  };

  it("lets the API make and read its tenant's key, and nobody else's", async () => {
    const api = rig.db.as('payments_api');
    const [a, b] = [unique('tenant'), unique('tenant')];
    const cipher = cipherAs((tenant) => api.ofTenant(tenant));
    const sealed = await cipher.encrypt({ ...at(a), plaintext: 'acct_1' });
    expect(await cipherAs((tenant) => api.ofTenant(tenant)).decrypt({ ...at(a), ...sealed })).toBe('acct_1');
    await expect(cipherAs(() => api.ofTenant(b)).decrypt({ ...at(a), ...sealed })).rejects.toThrow(
      DataKeyDeleted,
    );
    await expect(cipherAs(() => api).decrypt({ ...at(a), ...sealed })).rejects.toThrow(DataKeyDeleted);
    await expect(cipherAs(() => api).encrypt({ ...at(a), plaintext: 'x' })).rejects.toThrow();
    await expect(cipherAs(() => api.ofTenant(a)).encrypt({ ...at(b), plaintext: 'x' })).rejects.toThrow();
  });

  it.each(['payments_api', 'payments_worker'] as const)(
    'lets %s neither change nor delete a key',
    async (role) => {
      const tenant = unique('tenant');
      await processOn(sql).encrypt({ ...at(tenant), plaintext: 'acct_1' });
      const session = rig.db.as(role).ofTenant(tenant);
      for (const text of [
        `UPDATE data_key SET wrapped = '\\x00'`,
        `UPDATE data_key SET kek_id = 'kek-1'`,
        `DELETE FROM data_key`,
      ]) {
        await expect(session.query({ name: unique('refused'), text })).rejects.toThrow('permission denied');
      }
    },
  );

  it('shows the wrapped bytes to no reader', async () => {
    for (const role of ['payments_read', 'payments_auditor', 'payments_relay'] as const) {
      const text = 'SELECT wrapped FROM data_key';
      await expect(rig.db.as(role).query({ name: unique('refused'), text })).rejects.toThrow(
        'permission denied',
      );
    }
  });
});
