import type { Payout } from '../payout-book.js';

/** One line of the account's activity. A payout takes money from the balance: its gross is negative. */
export interface SettlementRow {
  readonly txnId: string;
  /** The payout that it is about. */
  readonly sourceId: string;
  readonly reference: string;
  readonly kind: 'payout' | 'return';
  readonly grossMinor: bigint;
  readonly feeMinor: bigint;
  /** Gross less fee. */
  readonly netMinor: bigint;
  readonly currency: string;
  /** Epoch milliseconds of the virtual clock. */
  readonly bookedAt: number;
  readonly availableAt: number;
  readonly batch: string;
}

/** What each payout costs. */
export const FEE_MINOR = 25n;
const DAY_MS = 86_400_000;
const AVAILABLE_AFTER_MS = 2 * DAY_MS;

/** What a payout has done to the balance; nothing unless it succeeded. */
export function rowsOfPayout(payout: Payout): readonly SettlementRow[] {
  if (payout.status !== 'succeeded' || payout.movedAt === null) return [];
  const row = rowOf({ ...payout, kind: 'payout', bookedAt: payout.movedAt, sourceId: payout.id });
  const { returned } = payout;
  if (returned?.at == null) return [row];
  const { id, amount, at } = returned;
  return [row, rowOf({ ...payout, id, amount, kind: 'return', bookedAt: at, sourceId: payout.id })];
}

interface Movement {
  /** Of what the row is named after; unique. */
  readonly id: string;
  readonly sourceId: string;
  readonly reference: string;
  readonly kind: SettlementRow['kind'];
  /** Whole minor units, never negative. */
  readonly amount: number;
  readonly currency: string;
  readonly bookedAt: number;
}

export function rowOf({
  id,
  sourceId,
  reference,
  kind,
  amount,
  currency,
  bookedAt,
}: Movement): SettlementRow {
  const grossMinor = kind === 'payout' ? -BigInt(amount) : BigInt(amount);
  const feeMinor = kind === 'payout' ? FEE_MINOR : 0n;
  return {
    txnId: `txn_${id}`,
    sourceId,
    reference,
    kind,
    grossMinor,
    feeMinor,
    netMinor: grossMinor - feeMinor,
    currency: currency.toUpperCase(),
    bookedAt,
    availableAt: bookedAt + AVAILABLE_AFTER_MS,
    batch: `batch_${new Date(bookedAt).toISOString().slice(0, 10).replaceAll('-', '')}`,
  };
}
