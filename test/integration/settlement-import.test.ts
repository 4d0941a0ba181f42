import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PaymentState } from '../../src/domain/payment-state.js';
import type { IdempotencyKey } from '../../src/domain/idempotency-key.js';
import { paymentId } from '../../src/domain/payment-id.js';
import { sha256 } from '../../src/platform/sha256.js';
import { UnusableFile } from '../../src/reconciliation/settlement-line.js';
import { registerFile } from '../../src/reconciliation/settlement-file.store.js';
import { identifyFile } from '../../src/reconciliation/settlement-source.js';
import { insertRows } from '../../src/reconciliation/settlement-row.store.js';
import { askPortion, NOTHING_TOLD, storePortion } from '../../src/reconciliation/store-portion.js';
import { insertScheduled, seedLane, seedTenant, unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { findBreaches } from '../support/invariants.js';
import { bringTo, closeAttempt, step } from '../support/payment-states.js';
import { until } from '../support/until.js';
import { importRig, settlementCsv, type ImportRig, type LineSeed } from '../support/settlement-world.js';

const DAY_MS = 86_400_000;
const ago = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

let db: TestDatabase;
let rig: ImportRig;
let tenant: string;
let lane: string;
let provider: string;
beforeAll(async () => {
  db = await createTestDatabase();
  rig = importRig(db);
  tenant = await seedTenant(db.database);
});
afterAll(async () => {
  rig.close();
  await db.drop();
});
beforeEach(async () => {
  provider = unique('provider');
  lane = await seedLane(db.database, { provider });
});

/** A payment of this test's provider that lived up to this state. */
async function make(state: PaymentState): Promise<string> {
  const { id } = await insertScheduled(db.database, { tenant, lane, provider });
  await bringTo(state, db.database, id);
  return id;
}

const file = (lines: readonly LineSeed[], note?: string) =>
  rig.import(settlementCsv(lines, note === undefined ? {} : { note }), { provider });

async function stateOf(id: string): Promise<string | undefined> {
  return (await db.query<{ state: string }>('SELECT state FROM payment WHERE id = $1', [id]))[0]?.state;
}

async function newsOf(id: string): Promise<readonly string[]> {
  const rows = await db.query<{ text: string }>(
    `SELECT kind || ' ' || coalesce(code, '-') || ' ' || coalesce(status, '-') AS text FROM evidence
      WHERE payment_id = $1 AND source = 'settlement' ORDER BY id`,
    [id],
  );
  return rows.map((row) => row.text);
}

async function casesOf(id: string): Promise<readonly string[]> {
  const rows = await db.query<{ reason: string }>(
    `SELECT reason FROM review_case WHERE payment_id = $1 AND closed_at IS NULL`,
    [id],
  );
  return rows.map((row) => row.reason);
}

async function transitionsOf(id: string): Promise<number> {
  return (await db.query(`SELECT 1 FROM payment_transition WHERE payment_id = $1`, [id])).length;
}

async function judged(id: string): Promise<readonly string[]> {
  const breaches = await findBreaches((text) => db.query(text), { except: [14] });
  return breaches.filter((b) => b.paymentId === id).map((b) => `${b.invariant} ${b.what}`);
}

describe('a matched line', () => {
  it.each([
    ['unknown', 'T14'],
    ['submitted', 'T17'],
    ['needs_review', 'T20'],
  ] as const)(
    'settles a payment in %s (%s): evidence, transition, and a wake for its workflow (UO-04)',
    async (state, rule) => {
      const id = await make(state);
      const { report, followedUp } = await file([
        { txn: unique('txn'), paymentId: id, source: unique('po') },
      ]);
      expect(report.counts.matched).toBe(1);
      expect(followedUp.settled).toBe(1);
      expect(await stateOf(id)).toBe('succeeded');
      expect(await newsOf(id)).toEqual(['matched - succeeded']);
      const [last] = await db.query<{ cause: string; actor: string; detail: string }>(
        `SELECT cause, actor, detail FROM payment_transition WHERE payment_id = $1 ORDER BY seq DESC LIMIT 1`,
        [id],
      );
      expect(last).toMatchObject({ cause: 'record-outcome', actor: 'settlement' });
      expect(last?.detail).toContain(`"${rule}"`);
      expect(
        await db.query(`SELECT 1 FROM outbox WHERE kind = 'wake' AND payment_id = $1`, [id]),
      ).toHaveLength(1);
      expect(await casesOf(id)).toEqual([]);
      expect(await judged(id)).toEqual([]);
    },
  );

  it('moves nothing in a review that only people end: it is evidence for them, and is done', async () => {
    const id = await make('needs_review');
    await db.query(`UPDATE review_case SET reason = 'key_mismatch' WHERE payment_id = $1`, [id]);
    const { report, followedUp } = await file([{ txn: unique('txn'), paymentId: id, source: unique('po') }]);
    expect(report.counts.matched).toBe(1);
    expect(followedUp).toMatchObject({ settled: 0, waiting: 0, failed: 0 });
    expect([await stateOf(id), await casesOf(id)]).toEqual(['needs_review', ['key_mismatch']]);
    expect(await newsOf(id)).toEqual(['matched - succeeded']);
    expect(await rig.followUps.run()).toMatchObject({ settled: 0, failed: 0 });
    expect(await newsOf(id)).toHaveLength(1);
  });

  it('changes nothing of a payment that has succeeded', async () => {
    const id = await make('succeeded');
    const before = await transitionsOf(id);
    const { report } = await file([{ txn: unique('txn'), paymentId: id }]);
    expect(report.counts.matched).toBe(1);
    expect(await transitionsOf(id)).toBe(before);
    expect(await newsOf(id)).toEqual([]);
  });

  it.each(['succeeded', 'returned'] as const)(
    'of another object than the one by which the payment is %s since is a possible double',
    async (state) => {
      const id = await make('submitting');
      const [ours, theirs] = [unique('po'), unique('po')];
      const { followedUp } = await file([{ txn: unique('txn'), paymentId: id, source: theirs }]);
      expect(followedUp).toMatchObject({ waiting: 1 });
      await closeAttempt(db.database, id, 'accepted');
      await step(db.database, id, { rule: 'T9', set: `, provider_ref = '${ours}'` });
      if (state === 'returned') await step(db.database, id, { rule: 'T21' });
      expect(await rig.followUps.run()).toMatchObject({ settled: 0, contradicted: 1 });
      expect([await stateOf(id), await casesOf(id)]).toEqual([state, ['unexpected_at_provider']]);
      expect(await newsOf(id)).toEqual(['unexpected_at_provider other_object -']);
    },
  );

  it('of the object by which the payment has succeeded since agrees', async () => {
    const id = await make('submitting');
    const source = unique('po');
    await file([{ txn: unique('txn'), paymentId: id, source }]);
    await closeAttempt(db.database, id, 'accepted');
    await step(db.database, id, { rule: 'T9', set: `, provider_ref = '${source}'` });
    expect(await rig.followUps.run()).toMatchObject({ settled: 0, contradicted: 0, waiting: 0 });
    expect(await casesOf(id)).toEqual([]);
  });

  it('waits while a call is under way, and settles by the next run', async () => {
    const id = await make('submitting');
    const { followedUp } = await file([{ txn: unique('txn'), paymentId: id }]);
    expect(followedUp).toMatchObject({ settled: 0, waiting: 1 });
    expect(await stateOf(id)).toBe('submitting');
    await db.query(
      `UPDATE submission_attempt SET closed_at = clock_timestamp(), evidence = 'ambiguous', result_class = 'ambiguous'
        WHERE payment_id = $1`,
      [id],
    );
    await db.query(
      `WITH t AS (INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, hash)
         SELECT id, version + 1, tenant_id, state, 'unknown', 'record-outcome', 'test', '' FROM payment WHERE id = $1)
       UPDATE payment SET state = 'unknown', version = version + 1, next_action_at = clock_timestamp() WHERE id = $1`,
      [id],
    );
    expect(await rig.scheduled.followUpSettlement()).toMatchObject({ settled: 1, waiting: 0 });
    expect(await stateOf(id)).toBe('succeeded');
  });

  it('settles once, however many imports and runs see it at the same time', async () => {
    const id = await make('unknown');
    const line = { txn: unique('txn'), paymentId: id };
    await Promise.all([file([line], 'a'), file([line], 'b'), rig.scheduled.followUpSettlement()]);
    await rig.scheduled.followUpSettlement();
    expect(await stateOf(id)).toBe('succeeded');
    expect(await newsOf(id)).toEqual(['matched - succeeded']);
    expect(await judged(id)).toEqual([]);
  });
});

describe('a line with other money', () => {
  it.each([
    ['amount', { gross: '-20.00' }, 'amount_differs'],
    ['currency', { currency: 'USD' }, 'currency_differs'],
  ] as const)('sends an open payment to review and never settles it (%s)', async (_, changed, bucket) => {
    for (const state of ['unknown', 'submitted', 'needs_review'] as const) {
      const id = await make(state);
      const { report } = await file([{ txn: unique('txn'), paymentId: id, ...changed }]);
      expect(report.counts[bucket]).toBe(1);
      expect(await stateOf(id)).toBe('needs_review');
      expect(await newsOf(id)).toEqual([`${bucket} - -`]);
      expect(await casesOf(id)).toHaveLength(1);
      expect(await judged(id)).toEqual([]);
    }
  });

  it('opens a case for a payment that has succeeded and leaves its state', async () => {
    const id = await make('succeeded');
    const before = await transitionsOf(id);
    await file([{ txn: unique('txn'), paymentId: id, gross: '-20.00' }]);
    expect(await casesOf(id)).toEqual(['settlement_differs']);
    expect([await stateOf(id), await transitionsOf(id)]).toEqual(['succeeded', before]);
    expect(await judged(id)).toEqual([]);
  });

  it('whose fee does not add up, or whose sign is flipped, is reported and settles nothing', async () => {
    const [fee, sign] = [await make('unknown'), await make('unknown')];
    const { report } = await file([
      { txn: unique('txn'), paymentId: fee, fee: '0.25' },
      { txn: unique('txn'), paymentId: sign, gross: '19.99' },
    ]);
    expect(report.counts).toMatchObject({ fee_differs: 1, sign_flipped: 1, matched: 0 });
    expect([await stateOf(fee), await stateOf(sign)]).toEqual(['unknown', 'unknown']);
  });

  it('is compared once more by the database when it acts', async () => {
    const id = await make('unknown');
    const txn = unique('txn');
    await file([{ txn, paymentId: id, gross: '-20.00', fee: '0.25' }]);
    // As if the judgement had been wrong: the guard in the statement that settles must not believe it.
    const other = await make('unknown');
    await db.query(
      `UPDATE settlement_row SET follow_up = 'settle', bucket = 'matched', payment_id = $2 WHERE txn_id = $1`,
      [txn, other],
    );
    expect(await rig.followUps.run()).toMatchObject({ settled: 0, contradicted: 1 });
    expect(await stateOf(other)).toBe('needs_review');
    expect(await newsOf(other)).toEqual(['unexpected_at_provider other_money -']);
  });
});

describe('what a line asks for', () => {
  it('is done once, however many runs take it at the same time', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, () => make('succeeded')));
    const lines = ids.map((paymentId) => ({ txn: unique('txn'), paymentId, gross: '-20.00' }));
    await file(lines);
    await db.query(`UPDATE settlement_row SET follow_up = 'contradict' WHERE txn_id = ANY ($1)`, [
      lines.map((line) => line.txn),
    ]);
    const runs = await Promise.all(Array.from({ length: 6 }, () => rig.followUps.run()));
    expect(runs.reduce((sum, run) => sum + run.contradicted, 0)).toBe(ids.length);
    // One by the import, one by all runs together.
    for (const id of ids) expect(await newsOf(id)).toHaveLength(2);
  });
});

describe('an unexpected line', () => {
  it.each(['failed', 'cancelled', 'expired', 'scheduled', 'held'] as const)(
    'of a payment in %s opens a case, files evidence and rewrites nothing (DC-02)',
    async (state) => {
      const id = await make(state);
      const before = await transitionsOf(id);
      const { report, followedUp } = await file([{ txn: unique('txn'), paymentId: id }]);
      expect(report.counts.unexpected_at_provider).toBe(1);
      expect(followedUp.contradicted).toBe(1);
      expect([await stateOf(id), await transitionsOf(id)]).toEqual([state, before]);
      expect(await casesOf(id)).toEqual(['unexpected_at_provider']);
      expect(await newsOf(id)).toHaveLength(1);
    },
  );

  it('is the second object that paid for one payment, in one file or in two', async () => {
    const [id, later] = [await make('unknown'), await make('unknown')];
    const line = (paymentId: string, source: string) => ({ txn: unique('txn'), paymentId, source });
    const first = await file([line(id, 'po_1'), line(id, 'po_2'), line(later, 'po_3')]);
    expect(first.report.counts).toMatchObject({ matched: 2, unexpected_at_provider: 1 });
    const second = await file([line(later, 'po_4')]);
    expect(second.report.counts).toMatchObject({ matched: 0, unexpected_at_provider: 1 });
    expect(second.report.trouble).toMatchObject([{ rowNo: 1, reason: 'other_object', paymentId: later }]);
    for (const each of [id, later]) {
      expect(await stateOf(each)).toBe('succeeded');
      expect(await casesOf(each)).toEqual(['unexpected_at_provider']);
    }
  });

  it('without a payment is kept, and names what might be meant as a hint only', async () => {
    const near = await make('unknown');
    const { report } = await file([{ txn: unique('txn'), paymentId: `pay_${'z'.repeat(32)}` }]);
    expect(report.trouble).toMatchObject([
      { bucket: 'unexpected_at_provider', reason: 'no_payment', paymentId: null, suggestions: [near] },
    ]);
    expect(await stateOf(near)).toBe('unknown');
    expect(await newsOf(near)).toEqual([]);
    expect(await rig.scheduled.followUpSettlement()).toMatchObject({ rejudged: 0, settled: 0 });
  });

  it('is judged again when its payment appears, as after a restore that clients filled up again', async () => {
    const key = unique('key');
    const id = paymentId({ tenant, key: key as IdempotencyKey, sha256 });
    const { report } = await file([{ txn: unique('txn'), paymentId: id }]);
    expect(report.trouble).toMatchObject([{ bucket: 'unexpected_at_provider', reason: 'no_payment' }]);
    await insertScheduled(db.database, { tenant, lane, provider, key });
    await bringTo('unknown', db.database, id);
    expect(await rig.scheduled.followUpSettlement()).toMatchObject({ rejudged: 1, settled: 1 });
    expect(await stateOf(id)).toBe('succeeded');
    expect(await rig.scheduled.followUpSettlement()).toMatchObject({ rejudged: 0, settled: 0 });
  });

  it('that names a payment of another provider is never matched with it', async () => {
    const elsewhere = await seedLane(db.database, { provider: 'other' });
    const { id } = await insertScheduled(db.database, { tenant, lane: elsewhere, provider: 'other' });
    await bringTo('unknown', db.database, id);
    const { report } = await file([{ txn: unique('txn'), paymentId: id }]);
    expect(report.trouble).toMatchObject([{ bucket: 'unexpected_at_provider', reason: 'other_provider' }]);
    expect(await stateOf(id)).toBe('needs_review');
  });
});

describe('a return in a file', () => {
  it('returns a payment after the success that the same file tells, in any order (T21, PR-01)', async () => {
    const [settled, paid] = [await make('unknown'), await make('succeeded')];
    const back = (paymentId: string, gross = '19.99') =>
      ({ txn: unique('txn'), paymentId, kind: 'return', gross, source: 're_1' }) as const;
    const { report, followedUp } = await file([
      back(settled),
      { txn: unique('txn'), paymentId: settled },
      { txn: unique('txn'), paymentId: paid },
      back(paid),
    ]);
    expect(report.counts).toMatchObject({ returned: 2, matched: 2 });
    expect(followedUp).toMatchObject({ settled: 1, returned: 2 });
    expect([await stateOf(settled), await stateOf(paid)]).toEqual(['returned', 'returned']);
    expect([await judged(settled), await judged(paid)]).toEqual([[], []]);
  });

  it('waits while its payment has no success, and never undoes a failure', async () => {
    const [open, failed] = [await make('unknown'), await make('failed')];
    const back = (paymentId: string) => ({ txn: unique('txn'), paymentId, kind: 'return', gross: '19.99' });
    const { followedUp } = await file([back(open), back(failed)]);
    expect(followedUp).toMatchObject({ returned: 0, waiting: 1, contradicted: 1 });
    expect([await stateOf(open), await stateOf(failed)]).toEqual(['unknown', 'failed']);
    await file([{ txn: unique('txn'), paymentId: open }]);
    expect(await stateOf(open)).toBe('returned');
  });
});

describe('the same file', () => {
  it('changes nothing when it is read again, and answers the same report', async () => {
    const ids = [await make('unknown'), await make('succeeded')];
    const text = settlementCsv([
      { txn: unique('txn'), paymentId: ids[0] ?? null },
      { txn: unique('txn'), paymentId: ids[1] ?? null, gross: '-1.00' },
      { txn: unique('txn'), paymentId: `pay_${'y'.repeat(32)}` },
    ]);
    const first = await rig.import(text, { provider });
    const snapshot = () =>
      db.query(`SELECT (SELECT count(*) FROM settlement_row) AS rows, (SELECT count(*) FROM evidence) AS news,
        (SELECT count(*) FROM payment_transition) AS moves, (SELECT count(*) FROM review_case) AS cases,
        (SELECT sum(rows) FROM settlement_count)::text AS counted`);
    const before = await snapshot();
    const again = await rig.import(text, { provider });
    expect(again.wasKnown).toBe(true);
    expect(again.report).toEqual(first.report);
    expect(await snapshot()).toEqual(before);
  });

  it('issued again in other bytes doubles nothing: its rows are known', async () => {
    const id = await make('unknown');
    const lines = [
      { txn: unique('txn'), paymentId: id, booked: ago(1) },
      { txn: unique('txn'), paymentId: `pay_${'x'.repeat(32)}`, booked: ago(1) },
    ];
    await file(lines, 'first');
    const again = await file([...lines, { txn: unique('txn'), kind: 'fee', booked: ago(0.5) }], 'second');
    expect(again.report).toMatchObject({ rows: 3, known: 2, trouble: [] });
    expect(again.report.counts).toMatchObject({
      matched: 0,
      duplicate: 0,
      unexpected_at_provider: 0,
      other: 1,
    });
    expect(await newsOf(id)).toEqual(['matched - succeeded']);
  });

  it('with a row twice, or an id with other content, keeps the first and reports the others by row', async () => {
    const id = await make('unknown');
    const line = { txn: unique('txn'), paymentId: id };
    const { report } = await file([line, line, { ...line, gross: '-20.00' }]);
    expect(report.counts).toMatchObject({ matched: 1, duplicate: 2 });
    expect(report.trouble.map((t) => [t.rowNo, t.reason])).toEqual([
      [2, 'same_content'],
      [3, 'other_content'],
    ]);
    const changed = await file([{ ...line, gross: '-21.00' }]);
    expect(changed.report.trouble).toMatchObject([
      { rowNo: 1, bucket: 'duplicate', reason: 'other_content' },
    ]);
    expect(await stateOf(id)).toBe('succeeded');
  });

  it('goes on after its last commit when its import was killed, and loses and doubles nothing (CR-01)', async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => make('succeeded')));
    const lines = ids.map((paymentId) => ({ txn: unique('txn'), paymentId }));
    const text = settlementCsv(lines);
    const path = rig.write(text);
    const identity = await identifyFile(path);
    const stored = await registerFile(db.database, { provider, format: 'csv', ...identity });
    // The killed import had stored two rows; its third portion was undone with its transaction.
    const readings = ids.slice(0, 2).map((paymentId, i) => ({
      kind: 'line' as const,
      line: {
        rowNo: i + 1, txnId: lines[i]?.txn ?? '', sourceId: null, reference: `${paymentId}/1`, paymentId, generation: 1,
        kind: 'payment' as const, grossMinor: -1_999n, feeMinor: 0n, netMinor: -1_999n, currency: 'EUR',
        bookedAt: ago(0), availableAt: null, batch: null,
      },
    })); // prettier-ignore
    await storePortion(
      db.database,
      stored,
      0,
      await askPortion(db.database, stored.provider, readings, false),
      NOTHING_TOLD,
    );
    const { report, wasKnown } = await rig.import(text, { provider });
    expect(wasKnown).toBe(false);
    expect(report).toMatchObject({ rows: 6, known: 0, trouble: [] });
    expect(report.counts.matched).toBe(6);
  });

  it('is stored by one of two imports that run at once; the other one stops and says so', async () => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => make('succeeded')));
    const text = settlementCsv(ids.map((paymentId) => ({ txn: unique('txn'), paymentId })));
    const results = await Promise.allSettled([
      rig.import(text, { provider }),
      rig.import(text, { provider }),
      rig.import(text, { provider }),
    ]);
    const lost = results.filter((r) => r.status === 'rejected').map((r) => (r.reason as Error).name);
    expect(lost.every((name) => name === 'PortionLost')).toBe(true);
    const { report } = await rig.import(text, { provider });
    expect(report).toMatchObject({ rows: 4, known: 0, trouble: [] });
    expect(report.counts.matched).toBe(4);
  });
});

describe('the database itself', () => {
  it('knows a file by its bytes: registered ten times at once it is one row', async () => {
    const identity = await identifyFile(rig.write(unique('bytes')));
    const file = { provider, format: 'csv', ...identity } as const;
    const stored = await Promise.all(Array.from({ length: 10 }, () => registerFile(db.database, file)));
    expect(new Set(stored.map((each) => each.id)).size).toBe(1);
    expect(await db.query(`SELECT 1 FROM settlement_file WHERE provider = $1`, [provider])).toHaveLength(1);
  });

  it('keeps one row for a line that two files bring at the same moment; the later one knows it', async () => {
    const id = await make('unknown');
    const line = { txn: unique('txn'), paymentId: id, booked: ago(0) };
    const text = settlementCsv([line], { note: 'first' });
    const first = await registerFile(db.database, {
      provider,
      format: 'csv',
      ...(await identifyFile(rig.write(text))),
    });
    let finish = (): void => undefined;
    const held = new Promise<void>((resolve) => (finish = resolve));
    // The first file's import has stored the line and not committed yet.
    const inserting = db.database.transaction(async (tx) => {
      await insertRows(tx, first, [
        {
          line: {
            rowNo: 1, txnId: line.txn, sourceId: null, reference: `${id}/1`, paymentId: id, generation: 1,
            kind: 'payment', grossMinor: -1_999n, feeMinor: 0n, netMinor: -1_999n, currency: 'EUR',
            bookedAt: line.booked, availableAt: null, batch: null,
          },
          judgement: { bucket: 'matched', reason: null, paymentId: id, followUp: 'settle' },
        },
      ]); // prettier-ignore
      await held;
    });
    const importing = file([line], 'second');
    await until(
      'the second import to wait for the first',
      () =>
        db.query(
          `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
        ),
      (rows) => rows.length > 0,
    );
    finish();
    await inserting;
    const { report } = await importing;
    expect(report).toMatchObject({ rows: 1, known: 1, trouble: [] });
    expect(await db.query(`SELECT 1 FROM settlement_row WHERE txn_id = $1`, [line.txn])).toHaveLength(1);
    expect(await newsOf(id)).toEqual(['matched - succeeded']);
  });
});

describe('a succeeded payment without a line', () => {
  /** Started this many days ago, as the database tells it. */
  async function startedAgo(id: string, days: number): Promise<void> {
    await db.query('ALTER TABLE payment DISABLE TRIGGER ALL');
    await db.query(
      `UPDATE payment SET execute_at = clock_timestamp() - $2 * interval '1 day',
         submission_started_at = clock_timestamp() - $2 * interval '1 day' WHERE id = $1`,
      [id, days],
    );
    await db.query('ALTER TABLE payment ENABLE TRIGGER ALL');
    for (const name of ['state', 'frozen', 'times', 'no_delete', 'no_truncate']) {
      await db.query(`ALTER TABLE payment ENABLE ALWAYS TRIGGER payment_${name}`);
    }
  }
  const fee = (days: number) => ({ txn: unique('txn'), kind: 'fee', gross: '-1.00', booked: ago(days) });

  it('is missing two days after its start by the end of the report, once, with a case', async () => {
    const [old, young, before, unknown] = [
      await make('succeeded'),
      await make('succeeded'),
      await make('succeeded'),
      await make('unknown'),
    ];
    await startedAgo(old, 5);
    await startedAgo(young, 2.2);
    await startedAgo(before, 20);
    await startedAgo(unknown, 5);
    const { report } = await file([fee(10), fee(1)]);
    expect(report.counts.missing_at_provider).toBe(1);
    expect(report.trouble).toMatchObject([{ rowNo: null, bucket: 'missing_at_provider', paymentId: old }]);
    expect(await casesOf(old)).toEqual(['missing_at_provider']);
    expect(await stateOf(old)).toBe('succeeded');
    expect((await file([fee(0.9)])).report.counts.missing_at_provider).toBe(0);
    expect(await newsOf(old)).toEqual(['missing_at_provider - -']);

    const found = await file([{ txn: unique('txn'), paymentId: old, booked: ago(0.5) }]);
    expect(found.report.trouble).toMatchObject([{ bucket: 'late', reason: 'was_missing', paymentId: old }]);
  });

  it('is not missing because one row has a date of another century', async () => {
    const id = await make('succeeded');
    await startedAgo(id, 1);
    await file([fee(10), { ...fee(1), booked: '2999-01-01T00:00:00Z' }]);
    expect(await casesOf(id)).toEqual([]);
  });
});

describe('a file that cannot be reconciled', () => {
  it.each([
    ['another header', 'a,b\n1,2\n'],
    ['nothing in it', ''],
  ])('with %s is refused and leaves nothing behind', async (_, text) => {
    const before = await db.query('SELECT count(*) FROM settlement_file');
    await expect(rig.import(text, { provider })).rejects.toBeInstanceOf(UnusableFile);
    expect(await db.query('SELECT count(*) FROM settlement_file')).toEqual(before);
  });

  it('that turns out to be broken keeps what was read, stays unfinished, and goes on when it is whole', async () => {
    const id = await make('unknown');
    const whole =
      `<Document><BkToCstmrStmt><Stmt><Ntry><Amt Ccy="EUR">19.99</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>` +
      `<BookgDt><Dt>${ago(0).slice(0, 10)}</Dt></BookgDt><AcctSvcrRef>${unique('b')}</AcctSvcrRef><NtryDtls><TxDtls>` +
      `<RmtInf><Ustrd>${id}/1</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>`;
    const options = { provider, format: 'camt053' } as const;
    await expect(rig.import(whole.replace('</Document>', ''), options)).rejects.toBeInstanceOf(UnusableFile);
    expect(await stateOf(id)).toBe('unknown');
    const { report } = await rig.import(whole, options);
    expect(report).toMatchObject({ rows: 1, known: 1 });
    expect(await stateOf(id)).toBe('succeeded');
  });
});

describe('a stored line', () => {
  it('is what the provider wrote: nobody changes or deletes it', async () => {
    const txn = unique('txn');
    await file([{ txn, kind: 'fee' }]);
    for (const text of [
      `UPDATE settlement_row SET gross = 1 WHERE txn_id = $1`,
      `UPDATE settlement_row SET booked_at = now() WHERE txn_id = $1`,
      `DELETE FROM settlement_row WHERE txn_id = $1`,
    ]) {
      await expect(db.query(text, [txn])).rejects.toMatchObject({ constraint: 'history_is_append_only' });
    }
  });
});
