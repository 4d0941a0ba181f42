import type { Payout, PayoutBook } from '../payout-book.js';
import { placeErrors, spoil } from './settlement-error.js';
import type { ErrorOrder, InjectedError } from './settlement-error.js';
import { rowsOfPayout } from './settlement-row.js';
import type { SettlementRow } from './settlement-row.js';

/** A span of booking times: epoch milliseconds of the virtual clock, from inclusive, to exclusive. */
export interface SettlementSpan {
  readonly account: string;
  readonly from: number;
  readonly to: number;
}

/**
 * What an account's statement says of a span: the rows in the order of booking, and which of them are
 * wrong. A function of the ledger, the span and the order of errors: asked twice, it says the same.
 * @param current the payout as it is now.
 * @throws RangeError when there are fewer payout rows than errors.
 */
export function settle(
  book: PayoutBook,
  current: (payout: Payout) => Payout,
  { account, from, to }: SettlementSpan,
  errors: ErrorOrder | null,
): { readonly rows: readonly SettlementRow[]; readonly answers: readonly InjectedError[] } {
  const rows = [...book.payoutsIn(account)]
    .flatMap((payout) => rowsOfPayout(current(payout)))
    .filter(({ bookedAt }) => bookedAt >= from && bookedAt < to)
    .sort((a, b) => a.bookedAt - b.bookedAt);
  if (!errors) return { rows, answers: [] };
  const payouts = rows.filter(({ kind }) => kind === 'payout').length;
  const places = placeErrors(errors, payouts);
  const answers: InjectedError[] = [];
  let place = -1;
  const told = rows.flatMap((row) => {
    if (row.kind === 'payout') place += 1;
    const error = row.kind === 'payout' ? places.get(place) : undefined;
    if (error === undefined) return [row];
    const spoiled = spoil(row, error);
    answers.push(spoiled.answer);
    return spoiled.rows;
  });
  return { rows: told, answers };
}
