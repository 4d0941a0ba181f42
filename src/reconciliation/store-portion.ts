import type { Database, Sql } from '../persistence/database.js';
import { judgeLine, type Judgement, type NamedPayment } from './judge-line.js';
import { advanceFile, lockFile } from './settlement-file.store.js';
import { BOOKING_LAG_MS, type Reading, type SettlementLine } from './settlement-line.js';
import {
  countBuckets,
  insertFaults,
  insertRows,
  knowLines,
  noteAppeared,
  type FaultRow,
  type JudgedLine,
  type LineKnowledge,
} from './settlement-row.store.js';

/** Somebody else imports the same file, or stored one of these lines meanwhile: nothing of the portion stands. */
export class PortionLost extends Error {
  override readonly name = 'PortionLost';
  constructor(readonly why: 'same_file' | 'same_line') {
    super(
      why === 'same_file'
        ? 'Another import of this file is under way. Wait for it, or start again when it has ended.'
        : 'Another import stored one of these lines meanwhile.',
    );
  }
}

/**
 * What a portion told: the next one's questions were asked before it was stored. Its new lines by txn id,
 * and the payments that it tells of.
 */
export interface Told {
  readonly lines: ReadonlyMap<string, SettlementLine>;
  readonly paid: ReadonlySet<string>;
}
export const NOTHING_TOLD: Told = Object.freeze({ lines: new Map<string, never>(), paid: new Set<never>() });

/** A part of a file, with what was known of its lines when it was asked. */
export interface Portion {
  readonly readings: readonly Reading[];
  readonly known: readonly LineKnowledge[];
}

/**
 * Asks what is known of the lines of `readings`.
 * @param looksForLines whether stored lines are looked for; without, the portion is lost if it has one.
 * @throws faults of storage. Twice: asks again.
 */
export async function askPortion(
  sql: Sql,
  provider: string,
  readings: readonly Reading[],
  looksForLines: boolean,
): Promise<Portion> {
  return { readings, known: await knowLines(sql, provider, linesOf(readings), looksForLines) };
}

const linesOf = (readings: readonly Reading[]): readonly SettlementLine[] =>
  readings.flatMap((reading) => (reading.kind === 'line' ? [reading.line] : []));

interface Sorted {
  readonly rows: JudgedLine[];
  readonly faults: FaultRow[];
  known: number;
  readonly told: Told;
}

/**
 * Judges and stores the next rows of a file in one transaction, with how far the file is: a killed
 * import goes on exactly after the last portion that was committed.
 * @param rowsDone how far the file was before; the portion begins right after. It must have been asked
 * about after everything but the portion right before it was stored.
 * @param before what the portion right before it told.
 * @returns how far the file is now, and what this portion told.
 * @throws PortionLost; faults of storage. Twice: the second is lost, nothing is doubled.
 */
export async function storePortion(
  database: Database,
  file: { readonly id: bigint; readonly provider: string },
  rowsDone: number,
  portion: Portion,
  before: Told,
): Promise<{ readonly rowsDone: number; readonly told: Told }> {
  const sorted = sortPortion(file, portion, before);
  return database.transaction(async (tx) => {
    if ((await lockFile(tx, file.id)) !== rowsDone) throw new PortionLost('same_file');
    if ((await insertRows(tx, file, sorted.rows)) === 'known') throw new PortionLost('same_line');
    await insertFaults(tx, file.id, sorted.faults);
    await noteAppeared(
      tx,
      sorted.rows.flatMap((r) => (r.judgement.reason === 'was_missing' ? (r.judgement.paymentId ?? []) : [])),
    );
    await countBuckets(tx, file.provider, countsOf(sorted));
    const done = rowsDone + portion.readings.length;
    await advanceFile(tx, file.id, {
      rowsDone: done,
      rowsKnown: sorted.known,
      ...bookedRange(sorted.rows),
    });
    return { rowsDone: done, told: sorted.told };
  });
}

function sortPortion(
  file: { readonly id: bigint; readonly provider: string },
  { readings, known }: Portion,
  before: Told,
): Sorted {
  const lines = new Map<string, SettlementLine>();
  const paid = new Set<string>();
  const sorted: Sorted = { rows: [], faults: [], known: 0, told: { lines, paid } };
  const paidSoFar = new Set(before.paid);
  for (const reading of readings) {
    if (reading.kind === 'line') continue;
    sorted.faults.push({ rowNo: reading.rowNo, bucket: 'unreadable', reason: reading.reason, txnId: null });
  }
  for (const [i, line] of linesOf(readings).entries()) {
    const knowledge = known[i];
    if (knowledge === undefined) continue;
    const earlier = lines.get(line.txnId) ?? before.lines.get(line.txnId);
    if (earlier !== undefined) {
      sorted.faults.push(duplicateOf(line, isSame(line, earlier)));
    } else if (knowledge.storedFileId !== null) {
      // The same line in another file is a file issued again; in this file it stands twice.
      const same = knowledge.storedIsSame === true;
      if (same && knowledge.storedFileId !== file.id) sorted.known++;
      else sorted.faults.push(duplicateOf(line, same));
    } else {
      lines.set(line.txnId, line);
      const judgement = judge(line, knowledge, file.provider, paidSoFar);
      sorted.rows.push({ line, judgement });
      if (judgement.paymentId === null || !tellsOfPayment(line, judgement)) continue;
      paid.add(judgement.paymentId);
      paidSoFar.add(judgement.paymentId);
    }
  }
  return sorted;
}

const tellsOfPayment = (line: SettlementLine, { bucket }: Judgement): boolean =>
  line.kind === 'payment' && bucket !== 'unexpected_at_provider';

/** A repeated id with other content is never taken for the line: what was stored first stays. */
function duplicateOf(line: SettlementLine, same: boolean): FaultRow {
  const reason = same ? 'same_content' : 'other_content';
  return { rowNo: line.rowNo, bucket: 'duplicate', reason, txnId: line.txnId };
}

function isSame(a: SettlementLine, b: SettlementLine): boolean {
  return (
    a.kind === b.kind &&
    a.grossMinor === b.grossMinor &&
    a.feeMinor === b.feeMinor &&
    a.netMinor === b.netMinor &&
    a.currency === b.currency &&
    a.sourceId === b.sourceId &&
    a.reference === b.reference
  );
}

/** @param paid payments that an earlier line of this portion or the one before told of. */
function judge(
  line: SettlementLine,
  known: LineKnowledge,
  provider: string,
  paid: ReadonlySet<string>,
): Judgement {
  const payment = paymentOf(known, paid);
  return judgeLine(line, { provider, bySource: known.bySource, payment }, BOOKING_LAG_MS);
}

/** The payment that a line names, as the judgement needs it. @param paid payments that an earlier line of the same portion told of. */
export function paymentOf(known: LineKnowledge, paid: ReadonlySet<string>): NamedPayment | null {
  if (known.paymentId === null) return null;
  return {
    id: known.paymentId,
    provider: known.paymentProvider,
    amount: known.amount,
    currency: known.currency,
    state: known.state,
    providerRef: known.providerRef,
    lastGeneration: known.lastGeneration,
    knowsGeneration: known.knowsGeneration,
    bookedAfterMs: known.bookedAfterMs,
    hasOtherLine: known.hasOtherLine || paid.has(known.paymentId),
    wasMissing: known.wasMissing,
  };
}

function countsOf({ rows, faults }: Sorted): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const add = (bucket: string): void => void counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  for (const { judgement } of rows) add(judgement.bucket);
  for (const fault of faults) add(fault.bucket);
  return counts;
}

/** Of new lines: what was known before says nothing about how far this report goes. */
function bookedRange(rows: readonly JudgedLine[]): {
  readonly firstBookedAt: string | null;
  readonly lastBookedAt: string | null;
} {
  let first = { atMs: Infinity, text: null as string | null };
  let last = { atMs: -Infinity, text: null as string | null };
  for (const { line } of rows) {
    const atMs = Date.parse(line.bookedAt);
    if (atMs < first.atMs) first = { atMs, text: line.bookedAt };
    if (atMs > last.atMs) last = { atMs, text: line.bookedAt };
  }
  return { firstBookedAt: first.text, lastBookedAt: last.text };
}
