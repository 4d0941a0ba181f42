import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeyFile, type KeyPurpose, type KeysFile } from '../../src/config/key-file.js';
import type { KeyUsage } from '../../src/encryption/key-usage.js';
import { registryOf } from '../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { startTestApi, type Client, type TestApi } from '../support/api.js';
import { databaseCipher, newKeySet } from '../support/ciphers.js';
import { EngineRig, live, type TestEngine } from '../support/engine.js';
import { activate, encryptionCommand, HostKeyFile, without } from '../support/key-files.js';
import { until } from '../support/until.js';

const file = new HostKeyFile('old');
const stops: (() => unknown)[] = [];
let rig: EngineRig;

beforeAll(async () => {
  rig = await EngineRig.start();
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  await rig.stop();
  file.remove();
});

/** The keys of one more process, which finds changes by itself. */
function keysOfProcess(): KeysFile {
  const followed = new KeyFile(file.path, 'development');
  stops.push(
    followed.watch({ changed: () => undefined, refused: (error) => expect.unreachable(String(error)) }),
  );
  return followed.keys;
}

const command = (...args: readonly string[]) => encryptionCommand(rig.db, file, ...args);

async function usage(): Promise<(purpose: KeyPurpose, id: string) => KeyUsage | undefined> {
  const { exitCode, json } = await command('status');
  expect(exitCode).toBe(0);
  const all = (json() as { keys: KeyUsage[] }).keys;
  return (purpose, id) => all.find((each) => each.purpose === purpose && each.id === id);
}

/** An API and a worker of their own, with nothing in memory. */
async function startProcesses(): Promise<{ readonly api: TestApi; readonly one: TestEngine }> {
  const [apiKeys, workerKeys] = [keysOfProcess(), keysOfProcess()];
  const providers = registryOf([
    new SimulatedProvider({ baseUrl: rig.simulator.url, apiKey: rig.simulator.apiKeys.A }),
  ]);
  const api = await startTestApi({ database: rig.db.connect('api', 8), keys: apiKeys, providers });
  stops.push(() => api.close());
  const cipher = databaseCipher(workerKeys, rig.tapped('worker-keys', 4));
  const one = await rig.engine({
    cipher: {
      openDestination: (of) => cipher.openDestination(of),
      sealParameters: (of) => cipher.sealParameters(of),
      openParameters: (of) => cipher.openParameters(of),
    },
  });
  return { api, one };
}

interface Made {
  readonly id: string;
  readonly key: string;
  readonly client: Client;
  readonly destination: string;
}

/** Creates, repeats and executes payments of ever new tenants until it is stopped. */
class Load {
  readonly made: Made[] = [];
  readonly errors: unknown[] = [];
  private stopping = false;
  private readonly running: Promise<void>[];
  private tenants = 0;

  constructor(private readonly on: readonly { readonly api: TestApi; readonly one: TestEngine }[]) {
    this.running = on.flatMap((process) => [this.run(process), this.run(process)]);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.running);
  }

  private async run(process: { readonly api: TestApi; readonly one: TestEngine }): Promise<void> {
    while (!this.stopping) {
      try {
        // A new tenant makes a data key with whatever key-encryption key is active in this process.
        const client = await process.api.client();
        for (let i = 0; i < 3; i++) await this.pay(process.one, client, `${this.tenants++}-${i}`);
      } catch (error) {
        this.errors.push(error);
      }
    }
  }

  private async pay(one: TestEngine, client: Client, name: string): Promise<void> {
    const of = { destination: `acct_${name}`, execute_at: 'now' };
    const made = await client.create(of, name);
    if (made.status !== 201) return void this.errors.push([made.status, made.body]);
    // The other process may have to open what this one sealed a moment ago.
    const other = this.on.find(({ one: that }) => that !== one) ?? this.on[0];
    const again = await other?.api.as(client.key).create(of, name);
    if (again?.status !== 200) this.errors.push([again?.status, again?.body]);
    const [row] = await rig.db.query<{ id: string; lane: string; version: number }>(
      'SELECT id, lane, version FROM payment WHERE id = $1',
      [made.body.id],
    );
    const end = row && (await live(other?.one ?? one, row as Parameters<typeof live>[1]));
    if (end !== 'succeeded') this.errors.push(end);
    this.made.push({ id: made.body.id as string, key: name, client, destination: of.destination });
  }
}

describe('a rotation of keys under load', () => {
  it('loses no create and no payment, and leaves no row that needs the old key-encryption key', async () => {
    const processes = [await startProcesses(), await startProcesses()];
    const load = new Load(processes);
    const more = async (count = 6): Promise<void> => {
      const from = load.made.length;
      await until('more payments', () => load.made.length, (n) => n >= from + count || load.errors.length > 0); // prettier-ignore
      expect(load.errors).toEqual([]);
    };
    await more();
    expect((await usage())('encryption', 'old')).toMatchObject({ standing: 'active' });

    // 1. The new keys join, 2. they become active: for key-encryption keys in one step, without waiting.
    const added = { encryption: newKeySet('new'), digest: newKeySet('new') };
    for (const purpose of ['encryption', 'digest'] as const) {
      file.change(activate(added[purpose]), purpose);
      await more();
    }

    // 3. The old one is retired, and what it wraps is wrapped again. Once: nothing slips in behind.
    let old = (await usage())('encryption', 'old');
    expect(old?.rows['data keys']).toBeGreaterThan(0);
    const rotated = await command('rotate');
    expect([rotated.exitCode, rotated.json()]).toMatchObject([0, { active: 'new', retired: ['old'] }]);
    await more();
    old = (await usage())('encryption', 'old');
    expect(old?.standing).toBe('unused');
    expect(old?.rows).toEqual({});
    const [row] = await rig.db.query(`SELECT count(*)::int AS n FROM data_key WHERE kek_id <> 'new'`);
    expect(row).toEqual({ n: 0 });

    // 4. The old one goes.
    file.change(without('old'), 'encryption');
    await more();
    for (const { api } of processes) {
      await until('the removal', () => Object.keys(api.keys.encryption.keys), (ids) => ids.join() === 'new'); // prettier-ignore
    }
    await more();
    await load.stop();
    expect(load.errors).toEqual([]);

    // Whoever starts now has nothing in memory and no old key: everything opens, old digests are still read.
    const { api } = await startProcesses();
    for (const { id, key, client, destination } of load.made) {
      const mine = api.as(client.key);
      expect((await mine.get(`/v1/payments/${id}`)).body).toMatchObject({ destination, state: 'succeeded' });
      expect((await mine.create({ destination, execute_at: 'now' }, key)).status).toBe(200);
      expect((await rig.simulator.effects(id)).count).toBe(1);
    }
    const standing = await usage();
    expect(standing('digest', 'old')).toMatchObject({ standing: 'needed' });
    expect(standing('digest', 'new')?.rows['destinations']).toBeGreaterThan(0);
    expect(load.made.length).toBeGreaterThan(30);
  });
});

describe('payments encryption', () => {
  it('answers 1 when rows need a key that the file lacks', async () => {
    file.change(without('old'), 'digest');
    const { exitCode, json } = await command('status');
    expect(exitCode).toBe(1);
    const { keys } = json() as { keys: KeyUsage[] };
    expect(keys.filter(({ standing }) => standing === 'missing')).toEqual([
      {
        purpose: 'digest',
        id: 'old',
        standing: 'missing',
        rows: { destinations: expect.any(Number) as number },
      },
    ]);
  });

  it('leaves a data key alone that does not open, wraps the others, and says so', async () => {
    await rig.db.query(
      `INSERT INTO data_key (id, tenant_id, month, wrapped, kek_id)
       VALUES ('dk_00000000-0000-7000-8000-000000000000', 'x', '2026-01', '\\x01', 'gone')`,
    );
    file.change(activate(newKeySet('newer')), 'encryption');
    const { exitCode, json } = await command('rotate');
    expect(exitCode).toBe(1);
    expect(json()).toMatchObject({
      active: 'newer',
      unreadable: { 'dk_00000000-0000-7000-8000-000000000000': 'destination_key_missing' },
    });
    const others = await rig.db.query(`SELECT DISTINCT kek_id FROM data_key ORDER BY 1`);
    expect(others).toEqual([{ kek_id: 'gone' }, { kek_id: 'newer' }]);
  });

  it('shreds a tenant only when its name is given twice, and no other tenant', async () => {
    const [one] = await rig.db.query<{ tenant_id: string }>(
      `SELECT tenant_id FROM data_key WHERE kek_id <> 'gone'`,
    );
    const tenant = one?.tenant_id ?? '';
    const count = async () => (await rig.db.query('SELECT 1 FROM data_key')).length;
    const before = await count();
    for (const confirm of [[], ['--confirm', 'x']]) {
      expect((await command('shred', '--tenant', tenant, ...confirm)).exitCode).toBe(2);
    }
    expect(await count()).toBe(before);
    const { exitCode, json } = await command('shred', '--tenant', tenant, '--confirm', tenant);
    expect([exitCode, json()]).toEqual([0, { tenant, deleted: 1 }]);
    expect(await count()).toBe(before - 1);
    const entries = await rig.db.query(
      `SELECT tenant_id, target, detail::jsonb AS detail FROM audit_log WHERE action = 'data_keys_deleted'`,
    );
    expect(entries).toEqual([{ tenant_id: tenant, target: tenant, detail: { deleted: 1 } }]);
  });
});
