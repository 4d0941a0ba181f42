import { appendFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { publicKeysOf } from '../../src/audit/anchor-keys.js';
import { newestCopy } from '../../src/audit/anchor-copies.js';
import { verifyCopies } from '../../src/audit/verify-copies.js';
import { withRawRows } from '../../src/persistence/copy-out.js';
import { ADVISORY_LOCKS } from '../../src/persistence/advisory-locks.js';
import { createAuditWorld, newAnchorKeys, type AuditWorld } from '../support/audit-world.js';
import { LockTimeout } from '../../src/persistence/database-errors.js';

let world: AuditWorld;
beforeEach(async () => {
  world = await createAuditWorld();
});
afterEach(() => world.close());

const leaves = (): Promise<{ payment_id: string; version: number; anchor_no: bigint }[]> =>
  world.db.query('SELECT payment_id, version, anchor_no FROM audit_anchor_leaf ORDER BY payment_id, version');

async function session(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: world.db.url });
  await client.connect();
  return client;
}

describe('an anchor', () => {
  it('holds the newest version of every payment that changed since the one before, and nothing twice', async () => {
    const first = await world.payment();
    await world.anchor();
    const second = await world.payment();
    await world.anchor();
    await world.anchor();
    expect(await leaves()).toEqual(
      [
        { payment_id: first, version: 4, anchor_no: 1n },
        { payment_id: second, version: 4, anchor_no: 2n },
      ].sort((a, b) => (a.payment_id < b.payment_id ? -1 : 1)),
    );
    expect(await world.verify()).toMatchObject({ anchors: 3, brokenCount: 0 });
  });

  it('misses no transition that commits after it with an older time', async () => {
    const slow = await session();
    try {
      await slow.query('BEGIN');
      await slow.query(`INSERT INTO setting (name, value) VALUES ('slow', 'x')`);
      // A later transaction commits first; an anchor that trusted times, or numbers seen, would pass the slow one.
      const later = await world.payment();
      await world.anchorNow();
      expect((await leaves()).map((leaf) => leaf.payment_id)).not.toContain(later);
      await slow.query('COMMIT');
      await world.anchor();
      expect((await leaves()).map((leaf) => leaf.payment_id)).toContain(later);
      expect(await world.verify()).toMatchObject({ brokenCount: 0 });
    } finally {
      await slow.end();
    }
  });

  it('loses nothing while payments commit all the time, and every transition is anchored in the end', async () => {
    let isDone = false;
    const writers = [1, 2, 3, 4].map(async () => {
      for (let i = 0; i < 15; i++) await world.payment();
    });
    const anchoring = (async () => {
      while (!isDone) await world.anchorNow(world.keys, 7);
    })();
    await Promise.all(writers);
    isDone = true;
    await anchoring;
    await world.anchor();
    const missing = await world.db.query(
      `SELECT p.id FROM payment p WHERE NOT EXISTS (
         SELECT FROM audit_anchor_leaf l WHERE l.payment_id = p.id AND l.version = p.version)`,
    );
    expect(missing).toEqual([]);
    expect(await world.verify()).toMatchObject({ payments: 60, transitions: 240, brokenCount: 0 });
  });

  it('after an outage becomes several, none of which is larger than its share', async () => {
    for (let i = 0; i < 6; i++) await world.payment();
    const run = await world.anchor(world.keys, 8);
    expect(run.kind === 'anchored' ? run.anchors.length : 0).toBeGreaterThanOrEqual(3);
    const [most] = await world.db.query<{ rows: bigint }>(
      `SELECT max(n) AS rows FROM (SELECT count(*) AS n FROM audit_anchor a JOIN payment_transition t
         ON t.xact < a.cut AND t.xact >= coalesce((SELECT b.cut FROM audit_anchor b WHERE b.no = a.no - 1), 0)
        GROUP BY a.no) per_anchor`,
    );
    expect(Number(most?.rows)).toBeLessThanOrEqual(8);
    expect(await world.verify()).toMatchObject({ brokenCount: 0 });
  });

  it('is made by one worker at a time: the next one waits, gives up, and finds a young one', async () => {
    const other = await session();
    try {
      await other.query(`BEGIN; SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.anchors})`);
      await expect(world.anchor()).rejects.toBeInstanceOf(LockTimeout);
      await other.query('COMMIT');
    } finally {
      await other.end();
    }
    await world.anchor();
    const { makeAnchors } = await import('../../src/audit/make-anchors.js');
    expect(await makeAnchors(world.db.database, { keys: world.keys, youngMs: 55_000 })).toEqual({
      kind: 'young',
    });
  });

  it('is not built on one that none of our keys signed', async () => {
    await world.anchor();
    expect(await world.anchor(newAnchorKeys('a1'))).toEqual({
      kind: 'refused',
      reason: 'last_anchor_unproven',
    });
    await world.tamper(`UPDATE audit_anchor SET leaves = leaves + 1`);
    expect(await world.anchor()).toEqual({ kind: 'refused', reason: 'last_anchor_unproven' });
  });

  it('is not made where the transactions began to count anew', async () => {
    await world.anchor();
    const far = 9_000_000_000_000n;
    const { anchorDigest } = await import('../../src/audit/anchor.js');
    const { signAnchor } = await import('../../src/audit/anchor-keys.js');
    const { readLastAnchor, insertAnchor, insertSignatures } =
      await import('../../src/audit/anchor.store.js');
    const last = await readLastAnchor(world.db.database, 0);
    if (!last) throw new Error('there is no anchor');
    const next = { ...last.anchor, no: 2, cut: far, previous: last.anchor.digest, leaves: 0 };
    await insertAnchor(world.db.database, { ...next, digest: anchorDigest(next) });
    await insertSignatures(world.db.database, 2, signAnchor(next, world.keys));
    expect(await world.anchor()).toEqual({ kind: 'refused', reason: 'counter_reset' });
  });

  it('cannot be changed or removed by the worker that made it', async () => {
    await world.payment();
    await world.anchor();
    for (const table of ['audit_anchor', 'audit_anchor_signature', 'audit_anchor_leaf']) {
      const texts = [`DELETE FROM ${table}`, `TRUNCATE ${table}`];
      for (const text of texts) {
        const attempt = world.db.database.query({ name: text, text });
        await expect(attempt).rejects.toMatchObject({ code: '42501' });
        await expect(world.db.query(text)).rejects.toMatchObject({ code: '42501' });
      }
    }
  });

  it('takes the transaction of a transition from the server, whatever a writer says', async () => {
    const id = await world.payment();
    await world.tamper(
      `DELETE FROM payment_transition WHERE payment_id = '${id}' AND seq = 4`,
      `UPDATE payment SET version = 3, state = 'succeeded' WHERE id = '${id}'`,
    );
    await world.db.query(
      `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, xact)
       SELECT payment_id, 4, tenant_id, 'succeeded', 'returned', 'record-return', 'test', 7 FROM payment_transition
        WHERE payment_id = $1 AND seq = 3`,
      [id],
    );
    const rows = await world.db.query(
      `SELECT xact > (SELECT xact FROM payment_transition WHERE payment_id = $1 AND seq = 3) AS is_servers
         FROM payment_transition WHERE payment_id = $1 AND seq = 4`,
      [id],
    );
    expect(rows).toEqual([{ is_servers: true }]);
  });
});

describe('a verification of anchors', () => {
  beforeEach(async () => {
    for (let i = 0; i < 3; i++) {
      await world.payment();
      await world.anchor();
    }
  });
  const faults = async (): Promise<unknown> => (await world.verify()).broken;

  it('finds a forged signature', async () => {
    await world.tamper(
      `UPDATE audit_anchor_signature SET signature = decode(repeat('ab', 64), 'hex') WHERE anchor_no = 2`,
    );
    expect(await faults()).toEqual([{ anchorNo: 2, fault: 'signature_forged' }]);
  });

  it('finds an anchor without a signature', async () => {
    await world.tamper('DELETE FROM audit_anchor_signature WHERE anchor_no = 2');
    expect(await faults()).toEqual([{ anchorNo: 2, fault: 'unsigned' }]);
  });

  it('finds an anchor whose parts were changed, also when its digest was corrected', async () => {
    await world.tamper(`UPDATE audit_anchor SET at = at + interval '1 hour' WHERE no = 2`);
    expect(await faults()).toEqual([{ anchorNo: 2, fault: 'digest_differs' }]);
    await world.tamper(`UPDATE audit_anchor SET digest = sha256(convert_to(concat_ws(E'\\n', 'anchor/v1', no,
      to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), cut, leaves, encode(root, 'hex'),
      encode(previous, 'hex')), 'UTF8')) WHERE no = 2`);
    expect(await faults()).toEqual([
      { anchorNo: 2, fault: 'signature_forged' },
      { anchorNo: 3, fault: 'previous_differs' },
    ]);
  });

  it('finds a removed anchor, a removed leaf and a changed leaf', async () => {
    await world.tamper('UPDATE audit_anchor_leaf SET version = 3 WHERE anchor_no = 3');
    expect(await faults()).toContainEqual({ anchorNo: 3, fault: 'root_differs' });
    await world.tamper('DELETE FROM audit_anchor_leaf WHERE anchor_no = 3');
    expect(await faults()).toContainEqual({ anchorNo: 3, fault: 'leaves_missing' });
    await world.tamper('DELETE FROM audit_anchor WHERE no = 2');
    expect(await faults()).toContainEqual({ anchorNo: 3, fault: 'anchor_missing' });
  });

  it('trusts no key that it was not given', async () => {
    const { broken } = await world.verify({ publicKeys: publicKeysOf(newAnchorKeys('other')) });
    expect(broken).toEqual([{ anchorNo: 1, fault: 'key_unknown' }]);
  });
});

describe('a new anchor key', () => {
  it('signs the last anchor of the old one, so that whoever trusts only it trusts all before', async () => {
    await world.payment();
    await world.anchor();
    const next = newAnchorKeys('a2');
    const both = { active: ['a1', 'a2'], keys: { ...world.keys.keys, ...next.keys } };
    await world.anchor(both);
    await world.anchor({ ...both, active: ['a2'] });
    await world.anchor(next);
    const signed = await world.db.query(`SELECT anchor_no, key_id FROM audit_anchor_signature ORDER BY 1, 2`);
    expect(signed).toEqual([
      { anchor_no: 1n, key_id: 'a1' },
      { anchor_no: 1n, key_id: 'a2' },
      { anchor_no: 2n, key_id: 'a1' },
      { anchor_no: 2n, key_id: 'a2' },
      { anchor_no: 3n, key_id: 'a2' },
      { anchor_no: 4n, key_id: 'a2' },
    ]);
    expect(await world.verify({ publicKeys: publicKeysOf(next) })).toMatchObject({ brokenCount: 0 });
    expect(await world.verify({ publicKeys: publicKeysOf(both) })).toMatchObject({ brokenCount: 0 });
    // The old key alone proves nothing of what came after it.
    expect((await world.verify()).broken).toEqual([{ anchorNo: 3, fault: 'key_unknown' }]);
  });
});

describe('copies outside the database', () => {
  const copies = (): string[] => readdirSync(world.folder).map((name) => join(world.folder, name));
  const file = (): string => copies()[0] ?? '';
  const verify = () => world.verify({ copies: world.folder });
  let gone: string;
  beforeEach(async () => {
    await world.payment();
    await world.anchor();
    gone = await world.payment();
    await world.anchor();
    await world.copy();
  });
  const wipe = (id: string): string[] =>
    [
      'evidence',
      'submission_attempt',
      'submission',
      'payment_return',
      'payment_transition',
      'outbox',
      'audit_anchor_leaf',
    ].map((table) => `DELETE FROM ${table} WHERE payment_id = '${id}'`);

  it('agree with the database, hold what each lacked, and get nothing twice', async () => {
    expect(await world.copy()).toEqual({ kind: 'copied', count: 0 });
    await world.anchor();
    expect(await world.copy()).toEqual({ kind: 'copied', count: 1 });
    expect(await verify()).toMatchObject({ anchors: 3, copiedAnchors: 3, brokenCount: 0 });
  });

  it.each([['whole history'], ['payment']])(
    'may get an anchor after the snapshot of a verification of a %s began',
    async (scope) => {
      const of = { url: world.db.urlOf('payments_auditor'), applicationName: 'test-verify' };
      const found: unknown[] = [];
      const copied = await withRawRows(of, async (rows) => {
        await rows.select('SELECT 1');
        const young = await world.payment();
        await world.anchorNow();
        await world.copy();
        return verifyCopies(rows, {
          since: null,
          paymentId: scope === 'payment' ? young : null,
          publicKeys: publicKeysOf(world.keys),
          folder: world.folder,
          firstNo: 1,
          found: (broken) => found.push(broken),
          later: (work) => withRawRows(of, work),
        });
      });
      expect({ copied, found }).toEqual({ copied: 3, found: [] });
    },
  );

  it('are not missed by a verification of a time when there was no anchor', async () => {
    const since = new Date(Date.now() + 3_600_000).toISOString();
    expect(await world.verify({ copies: world.folder, since })).toMatchObject({ anchors: 0, brokenCount: 0 });
  });

  it('name the payment that was deleted with its leaf and with every anchor that told of it', async () => {
    await world.tamper(
      ...wipe(gone),
      `DELETE FROM payment WHERE id = '${gone}'`,
      'DELETE FROM audit_anchor WHERE no = 2',
      'DELETE FROM audit_anchor_signature WHERE anchor_no = 2',
    );
    expect(await world.verify()).toMatchObject({ brokenCount: 0 });
    expect((await verify()).broken).toEqual([
      { anchorNo: 2, fault: 'missing_in_database' },
      { paymentId: gone, seq: 4, fault: 'payment_missing', anchorNo: 2 },
    ]);
  });

  it('name it also when only its leaf was deleted with it', async () => {
    await world.tamper(...wipe(gone), `DELETE FROM payment WHERE id = '${gone}'`);
    expect((await verify()).broken).toEqual([
      { anchorNo: 2, fault: 'leaves_missing' },
      { paymentId: gone, seq: 4, fault: 'payment_missing', anchorNo: 2 },
    ]);
  });

  it('show an anchor that was made anew with a stolen key', async () => {
    await world.tamper(...wipe(gone), `DELETE FROM payment WHERE id = '${gone}'`, 'DELETE FROM audit_anchor WHERE no = 2',
      'DELETE FROM audit_anchor_signature WHERE anchor_no = 2'); // prettier-ignore
    await world.anchor();
    expect(await world.verify()).toMatchObject({ brokenCount: 0 });
    expect((await verify()).broken[0]).toEqual({ anchorNo: 2, fault: 'differs_from_copy' });
    expect(await world.copy()).toEqual({ kind: 'differs', no: 2 });
  });

  it('are not continued by a database that lacks their newest anchor', async () => {
    const before = readFileSync(file(), 'utf8');
    await world.tamper('DELETE FROM audit_anchor WHERE no = 2');
    expect(await world.copy()).toEqual({ kind: 'ahead', no: 2 });
    expect(readFileSync(file(), 'utf8')).toBe(before);
  });

  it('are missed when a file is gone and the anchors are older than a copy may be', async () => {
    rmSync(file());
    expect((await verify()).broken).toEqual([]);
    await world.tamper(`UPDATE audit_anchor SET at = at - interval '10 minutes'`);
    expect((await verify()).broken).toContainEqual({ anchorNo: 1, fault: 'copy_missing' });
  });

  it('are missed when their beginning is gone', async () => {
    const text = readFileSync(file(), 'utf8');
    writeFileSync(file(), text.slice(text.indexOf('anchor {"no":2')));
    expect((await verify()).broken).toEqual([{ anchorNo: 2, fault: 'copy_missing' }]);
  });

  it.each([
    ['a changed leaf', (text: string) => text.replace(/(leaf pay_\w+) 4/, '$1 3'), 'root_differs'],
    ['a removed leaf', (text: string) => text.replace(/leaf .*\n/, ''), 'leaves_missing'],
    ['a changed anchor', (text: string) => text.replace(/"leaves":1/, '"leaves":2'), 'digest_differs'],
    [
      'a forged signature',
      (text: string) => text.replace(/"signature":"..../, '"signature":"AAAA'),
      'signature_forged',
    ],
  ])('show %s in a copy', async (_what, change, fault) => {
    writeFileSync(file(), change(readFileSync(file(), 'utf8')));
    expect((await verify()).broken).toContainEqual({ anchorNo: 1, fault });
  });

  it('go on after a writer that died in the middle of an anchor', async () => {
    await world.anchor();
    appendFileSync(file(), 'anchor {"no":3,"at":"2026');
    expect((await newestCopy(world.folder))?.no).toBe(2);
    expect(await world.copy()).toEqual({ kind: 'copied', count: 1 });
    expect(await verify()).toMatchObject({ copiedAnchors: 3, brokenCount: 0 });
  });

  it('get the signature of a new key, and are good for whoever trusts only that', async () => {
    const next = newAnchorKeys('a2');
    await world.anchor({ active: ['a2'], keys: { ...world.keys.keys, ...next.keys } });
    await world.copy();
    expect(readFileSync(file(), 'utf8')).toMatch(/^signature 2 /m);
    expect(await world.verify({ copies: world.folder, publicKeys: publicKeysOf(next) })).toMatchObject({
      copiedAnchors: 3,
      brokenCount: 0,
    });
  });
});
