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

interface Sorted {
  readonly rows: JudgedLine[];
  readonly faults: FaultRow[];
  known: number;
}

/**
 * Judges and stores the next rows of a file in one transaction, with how far the file is: a killed
 * import goes on exactly after the last portion that was committed.
 * @param rowsDone how far the file was before; `readings` begin right after.
 * @returns how far it is now.
 * @throws PortionLost; faults of storage. Twice: the second is lost, nothing is doubled.
 */
export async function storePortion(
  database: Database,
  file: { readonly id: bigint; readonly provider: string },
  rowsDone: number,
  readings: readonly Reading[],
): Promise<number> {
  return database.transaction(async (tx) => {
    if ((await lockFile(tx, file.id)) !== rowsDone) throw new PortionLost('same_file');
    const sorted = await sortReadings(tx, file, readings);
    if ((await insertRows(tx, file, sorted.rows)) !== sorted.rows.length) throw new PortionLost('same_line');
    await insertFaults(tx, file.id, sorted.faults);
    await noteAppeared(
      tx,
      sorted.rows.flatMap((r) => (r.judgement.reason === 'was_missing' ? (r.judgement.paymentId ?? []) : [])),
    );
    await countBuckets(tx, file.provider, countsOf(sorted));
    const done = rowsDone + readings.length;
    await advanceFile(tx, file.id, {
      rowsDone: done,
      rowsKnown: sorted.known,
      ...bookedRange(sorted.rows),
    });
    return done;
  });
}

async function sortReadings(
  tx: Sql,
  file: { readonly id: bigint; readonly provider: string },
  readings: readonly Reading[],
): Promise<Sorted> {
  const sorted: Sorted = { rows: [], faults: [], known: 0 };
  const lines: SettlementLine[] = [];
  for (const reading of readings) {
    if (reading.kind === 'line') lines.push(reading.line);
    else
      sorted.faults.push({ rowNo: reading.rowNo, bucket: 'unreadable', reason: reading.reason, txnId: null });
  }
  const known = await knowLines(tx, file.provider, lines);
  const first = new Map<string, SettlementLine>();
  const paid = new Set<string>();
  for (const [i, line] of lines.entries()) {
    const knowledge = known[i];
    if (knowledge === undefined) continue;
    const before = first.get(line.txnId);
    if (before !== undefined) {
      sorted.faults.push(duplicateOf(line, isSame(line, before)));
    } else if (knowledge.storedFileId !== null) {
      // The same line in another file is a file issued again; in this file it stands twice.
      const same = knowledge.storedIsSame === true;
      if (same && knowledge.storedFileId !== file.id) sorted.known++;
      else sorted.faults.push(duplicateOf(line, same));
    } else {
      first.set(line.txnId, line);
      sorted.rows.push({ line, judgement: judge(line, knowledge, file.provider, paid) });
    }
  }
  return sorted;
}

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

/** @param paid payments that an earlier line of this portion told of. */
function judge(line: SettlementLine, known: LineKnowledge, provider: string, paid: Set<string>): Judgement {
  const payment = paymentOf(known, paid);
  const judgement = judgeLine(line, { provider, bySource: known.bySource, payment }, BOOKING_LAG_MS);
  const told = line.kind === 'payment' && judgement.bucket !== 'unexpected_at_provider';
  if (told && judgement.paymentId !== null) paid.add(judgement.paymentId);
  return judgement;
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
  let first: JudgedLine | null = null;
  let last: JudgedLine | null = null;
  for (const row of rows) {
    if (first === null || at(row) < at(first)) first = row;
    if (last === null || at(row) > at(last)) last = row;
  }
  return { firstBookedAt: first?.line.bookedAt ?? null, lastBookedAt: last?.line.bookedAt ?? null };
}

const at = (row: JudgedLine): number => Date.parse(row.line.bookedAt);
