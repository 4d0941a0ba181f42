import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicKeysOf, writePublicKeys } from '../../src/audit/anchor-keys.js';
import { createAuditWorld, newAnchorKeys, type AuditWorld } from '../support/audit-world.js';
import { payments, type Ran } from '../support/command-line.js';

let world: AuditWorld;
let id: string;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  world = await createAuditWorld();
  id = await world.payment();
  await world.payment();
  await world.payment();
  await world.anchor();
  await world.copy();
  const keys = join(world.folder, 'keys.json');
  writeFileSync(keys, JSON.stringify(writePublicKeys(publicKeysOf(world.keys))));
  env = {
    PAYMENTS_DATABASE_URL: 'postgres://nobody:nothing@127.0.0.1:1/none',
    PAYMENTS_AUDITOR_DATABASE_URL: world.db.urlOf('payments_auditor'),
    PAYMENTS_ANCHOR_PUBLIC_KEYS_FILE: keys,
    PAYMENTS_ANCHOR_DIR: world.folder,
  };
});
afterAll(() => world.close());

const audit = (args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ran> =>
  payments(['audit', ...args], { ...env, ...more });
const exported = join('history.jsonl');

describe('payments audit export', () => {
  it('gives a history that verifies by public keys alone, and no changed one', async () => {
    const ran = await audit(['export', '--payment', id]);
    expect(ran.exitCode).toBe(0);
    const file = join(world.folder, exported);
    const offline = { PAYMENTS_AUDITOR_DATABASE_URL: undefined, PAYMENTS_ANCHOR_DIR: undefined };
    const verify = async (text: string) => {
      writeFileSync(file, text);
      const { exitCode, out } = await audit(['verify-export', file, '--json'], offline);
      return {
        exitCode,
        ...(JSON.parse(out) as { payments: { kind: string; fault?: string }[] }).payments[0],
      };
    };
    expect(await verify(ran.out)).toMatchObject({ exitCode: 0, kind: 'proven', version: 4, anchorNo: 1 });
    const history = JSON.parse(ran.out) as {
      transitions: { actor: string }[];
      proof: { path: string[]; anchor: object };
    };
    const [first, ...rest] = history.transitions;
    const changed = (change: object): string => JSON.stringify({ ...history, ...change });
    const broken = [
      [changed({ transitions: [{ ...first, actor: 'person:eve' }, ...rest] }), 'hash_differs'],
      [changed({ transitions: history.transitions.slice(0, 3) }), 'anchored_version_missing'],
      [changed({ transitions: rest }), 'transition_missing'],
      [changed({ proof: { ...history.proof, path: [] } }), 'root_differs'],
      [
        changed({ proof: { ...history.proof, anchor: { ...history.proof.anchor, at: '2020' } } }),
        'digest_differs',
      ],
      [changed({ proof: null }), 'not_anchored'],
    ] as const;
    for (const [text, fault] of broken) expect(await verify(text)).toMatchObject({ exitCode: 1, fault });
    const strangers = join(world.folder, 'strangers.json');
    writeFileSync(strangers, JSON.stringify(writePublicKeys(publicKeysOf(newAnchorKeys('x')))));
    writeFileSync(file, ran.out);
    const untrusted = await audit(['verify-export', file, '--public-keys', strangers], offline);
    expect(untrusted).toMatchObject({ exitCode: 1, out: expect.stringContaining('key_unknown') as unknown });
    rmSync(file);
  });

  it('gives every payment since a time, one line each', async () => {
    const ran = await audit(['export', '--since', '2020-01-01']);
    expect(ran.exitCode).toBe(0);
    expect(ran.out.trim().split('\n')).toHaveLength(3);
  });

  it('wants to be told what', async () => {
    expect(await audit(['export'])).toMatchObject({ exitCode: 2 });
    expect(await audit(['export', '--payment', 'pay_1'])).toMatchObject({ exitCode: 2 });
  });
});

describe('payments audit verify', () => {
  it('ends with 0 on a whole history and says what it looked at', async () => {
    const ran = await audit(['verify', '--json']);
    expect(ran.exitCode).toBe(0);
    expect(JSON.parse(ran.out)).toMatchObject({
      ok: true,
      transitions: 12,
      payments: 3,
      anchors: 1,
      copied_anchors: 1,
      broken: [],
    });
  });

  it.each([
    [
      'Postgres is unreachable',
      { PAYMENTS_AUDITOR_DATABASE_URL: 'postgres://a:b@127.0.0.1:1/none' },
      'cannot be reached',
    ],
    ['it has no log-in', { PAYMENTS_AUDITOR_DATABASE_URL: undefined }, 'PAYMENTS_AUDITOR_DATABASE_URL'],
    ['nobody says whom to trust', { PAYMENTS_ANCHOR_PUBLIC_KEYS_FILE: undefined }, '--public-keys'],
    ['the copies are not there', { PAYMENTS_ANCHOR_DIR: '/nonexistent/anchors' }, 'could not be checked'],
  ])('ends with 2 when %s', async (_what, more, sentence) => {
    const ran = await audit(['verify'], more);
    expect(ran.exitCode).toBe(2);
    expect(ran.err).toContain(sentence);
  });

  it('ends with 2 as a role that sees no rows', async () => {
    const ran = await audit(['verify'], { PAYMENTS_AUDITOR_DATABASE_URL: world.db.urlOf('payments_api') });
    expect(ran.exitCode).toBe(2);
  });

  it('ends with 1 on a broken one and names the first bad link', async () => {
    await world.tamper(`UPDATE payment_transition SET actor = 'x' WHERE payment_id = '${id}' AND seq = 3`);
    const ran = await audit(['verify']);
    expect(ran.exitCode).toBe(1);
    expect(ran.out).toContain('BROKEN in 1 places');
    expect(ran.out).toContain(`${id} transition 3`);
    expect(ran.out).toContain('hash_differs');
    const json = await audit(['verify', '--payment', id, '--json']);
    expect(JSON.parse(json.out)).toMatchObject({
      broken: [{ payment_id: id, seq: 3, fault: 'hash_differs' }],
    });
    expect(readFileSync(env['PAYMENTS_ANCHOR_PUBLIC_KEYS_FILE'] ?? '', 'utf8')).not.toContain(
      world.keys.keys['a1'],
    );
  });
});
