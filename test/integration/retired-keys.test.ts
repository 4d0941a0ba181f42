import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { KeyFile, type KeySet, type KeysFile } from '../../src/config/key-file.js';
import { DataKeys } from '../../src/encryption/data-keys.js';
import { DestinationCipher } from '../../src/encryption/destination-cipher.js';
import { DestinationDigests } from '../../src/encryption/destination-digest.js';
import { KeyFileEncryption } from '../../src/encryption/key-encryption.js';
import { KeyRing } from '../../src/encryption/key-ring.js';
import { rewrapDataKeys } from '../../src/encryption/key-rotation.js';
import type { KeyUsage } from '../../src/encryption/key-usage.js';
import { StorageUnavailable } from '../../src/persistence/database-errors.js';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { newKeySet } from '../support/ciphers.js';
import { armedFor, EngineRig, live } from '../support/engine.js';
import { activate, encryptionCommand, HostKeyFile, without } from '../support/key-files.js';
import { Latch } from '../support/tapped-database.js';
import { until } from '../support/until.js';

const stops: (() => unknown)[] = [];
let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start();
});
// Each test rotates keys of its own.
beforeEach(() => rig.db.query('TRUNCATE data_key, retired_key_encryption_key'));
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  await rig.stop();
});

/** The key file of a host with one key, and the key that comes next. */
function newFile(): { readonly file: HostKeyFile; readonly old: 'old'; readonly next: KeySet } {
  return { file: fileOf(new HostKeyFile('old')), old: 'old', next: newKeySet('new') };
}

function fileOf(file: HostKeyFile): HostKeyFile {
  stops.push(() => file.remove());
  return file;
}

/** A process that reads its key file when it starts, and again only when it has a reason to. */
async function startApi(file: HostKeyFile): Promise<TestApi> {
  const { keys } = new KeyFile(file.path, 'development');
  const api = await startTestApi({ database: rig.db.connect(unique('api'), 8), keys });
  stops.push(() => api.close());
  return api;
}

async function rotate(file: HostKeyFile) {
  const { exitCode, json, err } = await encryptionCommand(rig.db, file, 'rotate');
  expect([exitCode, err]).toEqual([0, '']);
  return json() as {
    readonly active: string;
    readonly retired: readonly string[];
    readonly rewrapped: number;
  };
}

async function standing(file: HostKeyFile, id: string): Promise<string | undefined> {
  const { json } = await encryptionCommand(rig.db, file, 'status');
  const { keys } = json() as { keys: KeyUsage[] };
  return keys.find((key) => key.purpose === 'encryption' && key.id === id)?.standing;
}

const kekOf = async ({ tenant }: Pick<Client, 'tenant'>): Promise<readonly string[]> =>
  (await rig.db.query<{ kek_id: string }>('SELECT kek_id FROM data_key WHERE tenant_id = $1', [tenant])).map(
    (row) => row.kek_id,
  );

const waitsForLock = (name: string): Promise<unknown> =>
  until(
    name,
    async () =>
      (await rig.db.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7314003 AND NOT granted`)).length,
    (n) => n > 0,
  ); // prettier-ignore

describe('a process that has not read the changed key file', () => {
  it('makes no data key with the retired key: it reads the file and makes it with the active one', async () => {
    const { file, old, next } = newFile();
    const api = await startApi(file);
    const client = await api.client();
    file.change(activate(next), 'encryption');
    expect((await rotate(file)).retired).toContain(old);
    expect(await standing(file, old)).toBe('unused');
    expect(api.keys.encryption.active).toBe(old);

    const made = await client.create();
    expect(made.status).toBe(201);
    expect(await kekOf(client)).toEqual([next.active]);
    expect(await standing(file, old)).toBe('unused');

    // What was promised: without the old key everything opens.
    file.change(without(old), 'encryption');
    const fresh = await startApi(file);
    const read = await fresh.as(client.key).get(`/v1/payments/${made.body.id}`);
    expect([read.status, read.body.destination]).toEqual([200, made.body.destination]);
  });

  it('serves many clients at once without an error', async () => {
    const { file, next } = newFile();
    const api = await startApi(file);
    const clients = await Promise.all(Array.from({ length: 20 }, () => api.client()));
    file.change(activate(next), 'encryption');
    await rotate(file);
    const made = await Promise.all(clients.map((client) => client.create()));
    expect(new Set(made.map((answer) => answer.status))).toEqual(new Set([201]));
    for (const client of clients) expect(await kekOf(client)).toEqual([next.active]);
  });
});

describe('a host whose key file stays behind', () => {
  const behind = (api: TestApi) =>
    api.logLines
      .map((line) => JSON.parse(line) as Record<string, string>)
      .filter((line) => line['event'] === 'key_file_behind')
      .map(({ level, operation, code }) => ({ level, operation, code }));

  it('answers 503, stores nothing, says which key is retired, and goes on when its file is up to date', async () => {
    const { file, old, next } = newFile();
    const host = fileOf(new HostKeyFile(file));
    const api = await startApi(host);
    const client = await api.client();
    file.change(activate(next), 'encryption');
    await rotate(file);

    const key = unique('order');
    for (let tries = 0; tries < 2; tries++) {
      const refused = await client.create({}, key);
      expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable']);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    }
    expect(await kekOf(client)).toEqual([]);
    expect(await rig.db.query('SELECT 1 FROM payment WHERE tenant_id = $1', [client.tenant])).toEqual([]);
    expect(behind(api)).toEqual([{ level: 'error', operation: 'key retired', code: old }]);

    host.change(activate(next), 'encryption');
    expect((await client.create({}, key)).status).toBe(201);
    expect(await kekOf(client)).toEqual([next.active]);
  });

  it('answers 503 to a tenant whose data key another host made with the key that it lacks, and says so', async () => {
    const { file, next } = newFile();
    const host = fileOf(new HostKeyFile(file));
    const api = await startApi(host);
    const client = await api.client();
    file.change(activate(next), 'encryption');
    expect((await (await startApi(file)).as(client.key, client.tenant).create()).status).toBe(201);

    const refused = await client.create();
    expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable']);
    expect(behind(api)).toEqual([{ level: 'error', operation: 'key missing', code: next.active }]);
    host.change(activate(next), 'encryption');
    expect((await client.create()).status).toBe(201);
  });

  it('puts a due payment off and does not hold it; it is paid when the file is up to date', async () => {
    const { file, next } = newFile();
    const payment = await rig.pay({
      cipher: cipherIn(SEPTEMBER, new KeyFile(file.path, 'development').keys),
    });
    const host = fileOf(new HostKeyFile(file));
    file.change(activate(next), 'encryption');
    await rotate(file);
    // It was given the new key and opens everything, but nobody made it the active one.
    host.change(({ active, keys }) => ({ active, keys: { ...keys, ...next.keys } }), 'encryption');
    const cipher = cipherIn(OCTOBER, new KeyFile(host.path, 'development').keys);
    const one = await rig.engine({
      cipher: {
        openDestination: (of) => cipher.openDestination(of),
        sealParameters: (of) => cipher.sealParameters(of),
        openParameters: (of) => cipher.openParameters(of),
      },
    });
    await expect(one.services.begin.beginSubmission(armedFor(payment))).rejects.toThrow(StorageUnavailable);
    expect(await rig.state(payment.id)).toBe('scheduled');
    expect(one.provider.submits).toEqual([]);

    host.change(activate(next), 'encryption');
    expect(await live(one, payment)).toBe('succeeded');
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
  });
});

const SEPTEMBER = Date.UTC(2026, 8, 15);
const OCTOBER = Date.UTC(2026, 9, 15);

/** The cipher of a process whose clock shows this time. */
function cipherIn(wallMs: number, keys: KeysFile): DestinationCipher {
  const ring = new KeyRing(keys.encryption);
  const parts = { kek: new KeyFileEncryption(ring), direct: ring, sqlOf: () => rig.db.database };
  return new DestinationCipher({
    keys: new DataKeys({ ...parts, wallMs: () => wallMs }),
    digests: new DestinationDigests(keys.digest),
  });
}

describe('a data key that is made while a rotation runs', () => {
  it('is waited for when it was stored first, and wrapped again too', async () => {
    const { file, old, next } = newFile();
    const kek = KeyFileEncryption.of(new KeyFile(file.path, 'development').keys.encryption);
    const place = { id: `dk_${crypto.randomUUID()}`, tenant: unique('tenant'), month: '2026-09' };
    const { wrapped, kekId } = await kek.wrap(place, Buffer.alloc(32, 7));
    const [stored, mayCommit] = [new Latch(), new Latch()];
    const insert = rig.db.as('payments_worker', 'inserts').transaction(async (tx) => {
      await tx.query(
        {
          name: 'insert',
          text: 'INSERT INTO data_key (id, tenant_id, month, wrapped, kek_id) VALUES ($1, $2, $3, $4, $5)',
        },
        [place.id, place.tenant, place.month, wrapped, kekId],
      );
      stored.open();
      await mayCommit.wait();
    });
    await stored.wait();
    file.change(activate(next), 'encryption');
    let isDone = false;
    const rotation = rotate(file).finally(() => (isDone = true));
    await waitsForLock('the rotation waits');
    expect(isDone).toBe(false);
    mayCommit.open();
    await insert;
    expect((await rotation).retired).toContain(old);
    expect(await kekOf(place)).toEqual([next.active]);
    expect(await standing(file, old)).toBe('unused');
  });

  it('waits when the retiring came first, and is then refused and made with the active key', async () => {
    const { file, old, next } = newFile();
    const api = await startApi(file);
    const client = await api.client();
    file.change(activate(next), 'encryption');
    const [retired, mayCommit] = [new Latch(), new Latch()];
    const retiring = rig.db.as('payments_admin', 'retires').transaction(async (tx) => {
      await tx.query({ name: 'lock', text: 'SELECT pg_advisory_xact_lock(7314003)' });
      const text = 'INSERT INTO retired_key_encryption_key (kek_id) VALUES ($1)';
      await tx.query({ name: 'retire', text }, [old]);
      retired.open();
      await mayCommit.wait();
    });
    await retired.wait();
    const made = client.create();
    await waitsForLock('the data key waits');
    mayCommit.open();
    await retiring;
    expect((await made).status).toBe(201);
    expect(await kekOf(client)).toEqual([next.active]);
  });

  it('that waits too long says that storage is away, not that its idempotency key is in use', async () => {
    const { file } = newFile();
    const client = await (await startApi(file)).client();
    const [locked, mayCommit] = [new Latch(), new Latch()];
    const retiring = rig.db.as('payments_admin', 'hangs').transaction(async (tx) => {
      await tx.query({ name: 'lock', text: 'SELECT pg_advisory_xact_lock(7314003)' });
      locked.open();
      await mayCommit.wait();
    });
    await locked.wait();
    const refused = await client.create();
    mayCommit.open();
    await retiring;
    expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable']);
  });
});

describe('a rotation', () => {
  it('calls an old key unused only when it is retired: before, a process may still take it', async () => {
    const { file, old, next } = newFile();
    file.change(activate(next), 'encryption');
    expect(await standing(file, old)).toBe('idle');
    await rotate(file);
    expect(await standing(file, old)).toBe('unused');
  });

  it('that is repeated changes nothing', async () => {
    const { file, old, next } = newFile();
    const client = await (await startApi(file)).client();
    await client.create();
    file.change(activate(next), 'encryption');
    const first = await rotate(file);
    const table = () =>
      rig.db.query('SELECT kek_id, retired_at::text FROM retired_key_encryption_key ORDER BY 1');
    const before = await table();
    expect(first.rewrapped).toBeGreaterThan(0);
    expect(await rotate(file)).toEqual({ active: next.active, retired: [], rewrapped: 0, unreadable: {} });
    expect(await table()).toEqual(before);
    expect(before).toContainEqual({ kek_id: old, retired_at: expect.any(String) as string });
  });

  it('wraps nothing with a key that another rotation retired meanwhile, and says so', async () => {
    const { file, old, next } = newFile();
    const client = await (await startApi(file)).client();
    await client.create();
    const kek = KeyFileEncryption.of(activate(next)(new KeyFile(file.path, 'development').keys.encryption));
    await rig.db.query('INSERT INTO retired_key_encryption_key (kek_id) VALUES ($1)', [next.active]);
    await expect(rewrapDataKeys(rig.db.as('payments_admin'), kek)).rejects.toThrow(
      'another rotation retired',
    );
    expect(await kekOf(client)).toEqual([old]);
  });

  it('goes back to a key that was retired, and each step stands in the audit log', async () => {
    const { file, old, next } = newFile();
    const api = await startApi(file);
    const [first, second] = [await api.client(), await api.client()];
    const [before] = await rig.db.query<{ id: string }>(
      'SELECT coalesce(max(id), 0)::text AS id FROM audit_log',
    );
    file.change(activate(next), 'encryption');
    await rotate(file);
    expect((await first.create()).status).toBe(201);
    expect(api.keys.encryption.active).toBe(next.active);

    file.change(({ keys }) => ({ active: old, keys }), 'encryption');
    expect(await rotate(file)).toMatchObject({ active: old, retired: [next.active] });
    expect([await standing(file, old), await standing(file, next.active)]).toEqual(['active', 'unused']);
    expect(await kekOf(first)).toEqual([old]);
    // A process that still takes the other one is refused as well.
    expect((await second.create()).status).toBe(201);
    expect(await kekOf(second)).toEqual([old]);
    const entries = await rig.db.query(
      `SELECT action, target FROM audit_log WHERE action LIKE 'key_encryption_key_%' AND id > $1 ORDER BY id`,
      [before?.id],
    );
    expect(entries).toEqual([
      { action: 'key_encryption_key_retired', target: old },
      { action: 'key_encryption_key_reinstated', target: old },
      { action: 'key_encryption_key_retired', target: next.active },
    ]);
  });

  it.each(['payments_api', 'payments_worker'] as const)('is not for %s', async (role) => {
    const session = rig.db.as(role, 'refused');
    for (const text of [
      `SELECT 1 FROM retired_key_encryption_key`,
      `INSERT INTO retired_key_encryption_key (kek_id) VALUES ('x')`,
      `DELETE FROM retired_key_encryption_key`,
    ]) {
      await expect(session.query({ name: unique('refused'), text })).rejects.toThrow('permission denied');
    }
  });
});
