import { hash } from 'node:crypto';
import { rowOf } from './settlement-row.js';
import type { SettlementRow } from './settlement-row.js';

/** What can be wrong in a settlement file, in the order in which they are dealt out. */
export const ERROR_KINDS = [
  'missing_row',
  'amount_differs',
  'currency_differs',
  'fee_differs',
  'duplicate_row',
  /** A second payout for the same reference: a double. */
  'unexpected_row',
  'sign_flip',
  'returned_after_success',
  'late',
] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

/** One line of the answer sheet. */
export interface InjectedError {
  readonly error: ErrorKind;
  readonly reference: string;
  readonly source_id: string;
  /** Of the row that is wrong or too much; of the one that is missing. */
  readonly txn_id: string;
}

/** How many errors to put in, and the seed that places them. */
export interface ErrorOrder {
  readonly seed: string;
  readonly count: number;
}

const DAY_MS = 86_400_000;
const LATE_MS = 5 * DAY_MS;
const FEE_DIFFERENCE = 7n;
/** Another currency with the same number of digits. */
const OTHER_CURRENCY: Readonly<Record<string, string>> = { EUR: 'USD', JPY: 'KRW', KWD: 'BHD' };

/**
 * Deals the errors out: place among the payout rows to kind. All kinds in turn, places drawn from the
 * seed. Twice: the same.
 * @throws RangeError when there are fewer rows than errors.
 */
export function placeErrors({ seed, count }: ErrorOrder, rows: number): ReadonlyMap<number, ErrorKind> {
  if (count > rows) throw new RangeError(`${count} errors do not fit into ${rows} rows.`);
  const places = new Map<number, ErrorKind>();
  for (let draw = 0; places.size < count; draw += 1) {
    const digest = hash('sha256', `${seed}\n${draw}`, 'buffer');
    const place = Number(digest.readBigUInt64BE() % BigInt(rows));
    if (places.has(place)) continue;
    places.set(place, ERROR_KINDS[places.size % ERROR_KINDS.length] as ErrorKind);
  }
  return places;
}

/** The rows that stand in the file in place of an honest payout row, and what the sheet says of it. */
export function spoil(
  row: SettlementRow,
  error: ErrorKind,
): { readonly rows: readonly SettlementRow[]; readonly answer: InjectedError } {
  const rows = spoiled(row, error);
  const { txnId, sourceId: source_id, reference } = rows.at(-1) ?? row;
  return { rows, answer: { error, reference, source_id, txn_id: txnId } };
}

function spoiled(row: SettlementRow, error: ErrorKind): readonly SettlementRow[] {
  switch (error) {
    case 'missing_row':
      return [];
    case 'amount_differs':
      return [withGross(row, row.grossMinor - 1n)];
    case 'currency_differs':
      return [{ ...row, currency: OTHER_CURRENCY[row.currency] ?? 'EUR' }];
    case 'fee_differs':
      return [{ ...row, feeMinor: row.feeMinor + FEE_DIFFERENCE }];
    case 'duplicate_row':
      return [row, row];
    case 'unexpected_row':
      return [row, { ...row, txnId: `${row.txnId}double`, sourceId: `${row.sourceId}double` }];
    case 'sign_flip':
      return [withGross(row, -row.grossMinor)];
    case 'returned_after_success':
      return [row, returnOf(row)];
    case 'late':
      return [{ ...row, bookedAt: row.bookedAt + LATE_MS, availableAt: row.availableAt + LATE_MS }];
  }
}

function withGross(row: SettlementRow, grossMinor: bigint): SettlementRow {
  return { ...row, grossMinor, netMinor: grossMinor - row.feeMinor };
}

function returnOf({ sourceId, reference, grossMinor, currency, bookedAt }: SettlementRow): SettlementRow {
  return rowOf({
    id: sourceId.replace(/^[a-z]+_/, 'ret_'),
    sourceId,
    reference,
    kind: 'return',
    amount: Number(-grossMinor),
    currency,
    bookedAt: bookedAt + DAY_MS,
  });
}
