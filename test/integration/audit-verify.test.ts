import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyHistory } from '../../src/audit/verify.js';
import { publicKeysOf } from '../../src/audit/anchor-keys.js';
import { StorageUnavailable } from '../../src/persistence/database-errors.js';
import { createAuditWorld, type AuditWorld } from '../support/audit-world.js';

let world: AuditWorld;
let ids: string[];
const at = (i: number): string => ids[i] ?? '';

beforeEach(async () => {
  world = await createAuditWorld();
  ids = [];
  for (let i = 0; i < 5; i++) ids.push(await world.payment());
});
afterEach(() => world.close());

const CANONICAL = `concat_ws(E'\\n', 'transition/v1', t.payment_id, t.seq, t.tenant_id, coalesce(t.from_state, 'none'),
  t.to_state, t.cause, t.actor, to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), t.detail)`;

/** Writes the chain of a payment anew from a transition on, as somebody who knows how would. */
const rehash = (id: string, from: number): string[] =>
  [from, from + 1, from + 2].map(
    (seq) => `UPDATE payment_transition t SET hash = sha256(coalesce((SELECT p.hash FROM payment_transition p
        WHERE p.payment_id = t.payment_id AND p.seq = t.seq - 1), '') || convert_to(${CANONICAL}, 'UTF8'))
      WHERE t.payment_id = '${id}' AND t.seq = ${seq}`,
  );

const wipe = (id: string): string[] =>
  ['evidence', 'submission_attempt', 'submission', 'payment_return', 'payment_transition', 'outbox'].map(
    (table) => `DELETE FROM ${table} WHERE payment_id = '${id}'`,
  );

describe('a verification', () => {
  it('finds nothing in a history that nobody touched, anchored or not', async () => {
    expect(await world.verify()).toMatchObject({ transitions: 20, payments: 5, anchors: 0, brokenCount: 0 });
    await world.anchor();
    await world.payment();
    expect(await world.verify()).toMatchObject({ transitions: 24, payments: 6, anchors: 1, brokenCount: 0 });
  });

  it('covers actors and details outside ASCII byte by byte', async () => {
    await world.tamper(
      `UPDATE payment_transition SET actor = 'api_key:é€😀', detail = '{"a":"ß"}' WHERE payment_id = '${at(0)}' AND seq = 2`,
      ...rehash(at(0), 2),
    );
    expect(await world.verify()).toMatchObject({ brokenCount: 0 });
  });

  it('refuses to pass as a role that sees no rows', async () => {
    await expect(world.verify({ url: world.db.urlOf('payments_api') })).rejects.toThrow(
      'does not see every row',
    );
  });

  it('refuses a view in the place of a table', async () => {
    await world.db.query(`ALTER TABLE audit_anchor_leaf RENAME TO hidden;
      CREATE VIEW audit_anchor_leaf AS SELECT * FROM hidden; GRANT SELECT ON audit_anchor_leaf TO payments_auditor`);
    await expect(world.verify()).rejects.toThrow('no table audit_anchor_leaf');
  });

  it('says that Postgres cannot be reached instead of passing', async () => {
    const options = {
      applicationName: 'test',
      publicKeys: publicKeysOf(world.keys),
      since: null,
      paymentId: null,
    };
    const url = 'postgres://nobody:nothing@127.0.0.1:1/none';
    await expect(verifyHistory({ ...options, url, copies: null })).rejects.toBeInstanceOf(StorageUnavailable);
  });
});

describe('with every trigger off, a superuser', () => {
  beforeEach(async () => void (await world.anchor()));

  it.each(['actor', 'cause', 'tenant_id', 'detail', 'from_state', 'to_state'])(
    'who edits the %s of a transition is found at it',
    async (column) => {
      await world.tamper(
        `UPDATE payment_transition SET ${column} = 'x' WHERE payment_id = '${at(2)}' AND seq = 2`,
      );
      expect((await world.verify()).broken).toEqual([{ paymentId: at(2), seq: 2, fault: 'hash_differs' }]);
    },
  );

  it('who moves the time of a transition by a microsecond is found at it', async () => {
    await world.tamper(
      `UPDATE payment_transition SET at = at + interval '1 us' WHERE payment_id = '${at(1)}' AND seq = 3`,
    );
    expect((await world.verify()).broken).toEqual([{ paymentId: at(1), seq: 3, fault: 'hash_differs' }]);
  });

  it('who deletes a transition in the middle is found where it is missing', async () => {
    await world.tamper(`DELETE FROM payment_transition WHERE payment_id = '${at(1)}' AND seq = 2`);
    expect((await world.verify()).broken).toEqual([
      { paymentId: at(1), seq: 2, fault: 'transition_missing' },
    ]);
  });

  it('who cuts off the end is found by the head row', async () => {
    await world.tamper(`DELETE FROM payment_transition WHERE payment_id = '${at(3)}' AND seq = 4`);
    const { broken } = await world.verify();
    expect(broken).toEqual([{ paymentId: at(3), seq: 4, fault: 'anchored_version_missing', anchorNo: 1 }]);
  });

  it('who cuts off the end before it was anchored is found by the head row', async () => {
    const young = await world.payment();
    await world.tamper(`DELETE FROM payment_transition WHERE payment_id = '${young}' AND seq = 4`);
    expect((await world.verify()).broken).toEqual([
      { paymentId: young, seq: 4, fault: 'head_version_differs' },
    ]);
  });

  it('who cuts off the end and corrects the head row is found by the anchor', async () => {
    await world.tamper(
      `DELETE FROM payment_transition WHERE payment_id = '${at(3)}' AND seq = 4`,
      `UPDATE payment SET version = 3, state = 'succeeded' WHERE id = '${at(3)}'`,
    );
    expect((await world.verify()).broken).toEqual([
      { paymentId: at(3), seq: 4, fault: 'anchored_version_missing', anchorNo: 1 },
    ]);
  });

  it('who deletes a payment with all its rows is found by the anchor', async () => {
    await world.tamper(...wipe(at(4)), `DELETE FROM payment WHERE id = '${at(4)}'`);
    expect((await world.verify()).broken).toEqual([
      { paymentId: at(4), seq: 1, fault: 'payment_missing', anchorNo: 1 },
    ]);
  });

  it('who swaps what two payments did is found at both', async () => {
    const swap = (column: string): string =>
      `UPDATE payment_transition a SET ${column} = b.${column} FROM payment_transition b
        WHERE (a.payment_id, b.payment_id) IN (('${at(0)}', '${at(1)}'), ('${at(1)}', '${at(0)}'))
          AND a.seq = 3 AND b.seq = 3`;
    await world.tamper(swap('at'), swap('hash'));
    const { broken } = await world.verify();
    expect(broken).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ paymentId: at(0), seq: 3, fault: 'hash_differs' }),
        expect.objectContaining({ paymentId: at(1), seq: 3, fault: 'hash_differs' }),
      ]),
    );
  });

  it('who writes a history anew with right hashes is found by the anchor', async () => {
    await world.tamper(
      `UPDATE payment_transition SET actor = 'person:eve' WHERE payment_id = '${at(0)}' AND seq = 2`,
      ...rehash(at(0), 2),
    );
    expect((await world.verify()).broken).toEqual([
      { paymentId: at(0), seq: 4, fault: 'anchored_hash_differs', anchorNo: 1 },
    ]);
  });

  it('who slips an old transition in is found, since no anchor holds it', async () => {
    await world.tamper(
      `INSERT INTO payment_transition SELECT payment_id, 5, tenant_id, to_state, to_state, cause, actor, at, detail, hash, xact
         FROM payment_transition WHERE payment_id = '${at(0)}' AND seq = 4`,
      ...rehash(at(0), 5),
      `UPDATE payment SET version = 5 WHERE id = '${at(0)}'`,
    );
    expect((await world.verify()).broken).toEqual([{ paymentId: at(0), seq: 5, fault: 'not_anchored' }]);
  });

  it('who changes the state of the head row is found', async () => {
    await world.tamper(`UPDATE payment SET state = 'succeeded' WHERE id = '${at(0)}'`);
    expect((await world.verify()).broken).toEqual([
      { paymentId: at(0), seq: 4, fault: 'head_state_differs' },
    ]);
  });

  it('who replaces the functions in the database gains nothing', async () => {
    await world.db.query(`CREATE OR REPLACE FUNCTION payment_transition_canonical(entry payment_transition)
      RETURNS text LANGUAGE sql STABLE AS $$ SELECT 'anything' $$`);
    await world.tamper(
      `UPDATE payment_transition SET actor = 'person:eve', hash = sha256('anything') WHERE payment_id = '${at(0)}' AND seq = 1`,
    );
    expect((await world.verify()).broken[0]).toMatchObject({
      paymentId: at(0),
      seq: 1,
      fault: 'hash_differs',
    });
  });
});

describe('a verification of a part', () => {
  it('of one payment looks at it and the anchors that hold it, and at nothing else', async () => {
    await world.anchor();
    await world.payment();
    await world.anchor();
    await world.tamper(`UPDATE payment_transition SET actor = 'x' WHERE payment_id = '${at(2)}' AND seq = 2`);
    expect(await world.verify({ paymentId: at(1) })).toMatchObject({
      transitions: 4,
      anchors: 1,
      brokenCount: 0,
    });
    expect(await world.verify({ paymentId: at(2) })).toMatchObject({ transitions: 4, brokenCount: 1 });
  });

  it('since a time looks at whole chains of what changed since, also of what is gone', async () => {
    await world.anchor();
    const [row] = await world.db.query<{ now: string }>('SELECT clock_timestamp()::text AS now');
    const since = row?.now ?? '';
    const [young, gone] = [await world.payment(), await world.payment()];
    await world.anchor();
    expect(await world.verify({ since })).toMatchObject({
      transitions: 8,
      payments: 2,
      anchors: 1,
      brokenCount: 0,
    });
    await world.tamper(...wipe(gone), `DELETE FROM payment WHERE id = '${gone}'`);
    expect(await world.verify({ since })).toMatchObject({ transitions: 4, payments: 2 });
    expect((await world.verify({ since })).broken).toEqual([
      { paymentId: gone, seq: 1, fault: 'payment_missing', anchorNo: 2 },
    ]);
    expect(young).not.toBe(gone);
  });
});
