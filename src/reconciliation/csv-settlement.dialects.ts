import type { LineKind } from './settlement-line.js';

/** The columns of a row in our words, to the names that a provider gives them in the header. */
export interface CsvDialect {
  readonly name: string;
  readonly columns: {
    readonly txnId: string;
    readonly sourceId: string;
    /** One column, or the two that hold payment id and generation apart. */
    readonly reference: string | readonly [paymentId: string, generation: string];
    readonly kind: string;
    readonly gross: string;
    readonly fee: string;
    readonly net: string;
    readonly currency: string;
    readonly booked: string;
    readonly available: string;
    readonly batch: string;
  };
  /** Columns that a file may lack: nothing is matched or settled by them. */
  readonly optional: readonly string[];
  /** The provider's word for a row to what it is. A word that is not here makes the row unreadable. */
  readonly kinds: Readonly<Record<string, LineKind>>;
  /** True: the provider writes currencies in lower case. */
  readonly lowerCaseCurrency: boolean;
}

/** Itemized balance activity with the columns in our own words. */
const ITEMIZED: CsvDialect = {
  name: 'itemized balance activity',
  columns: {
    txnId: 'provider_txn_id',
    sourceId: 'source_id',
    reference: 'our_reference',
    kind: 'kind',
    gross: 'gross',
    fee: 'fee',
    net: 'net',
    currency: 'currency',
    booked: 'booked',
    available: 'available',
    batch: 'batch',
  },
  optional: ['available', 'batch'],
  kinds: {
    payment: 'payment',
    payout: 'payment',
    return: 'return',
    reversal: 'return',
    fee: 'other',
    adjustment: 'other',
    top_up: 'other',
  },
  lowerCaseCurrency: false,
};

/**
 * Stripe's itemized balance change from activity report, with the transfer's metadata as columns. Its
 * `payout` rows are sweeps to the platform's own bank account, not payments of ours.
 */
const STRIPE: CsvDialect = {
  name: "Stripe's itemized balance change from activity",
  columns: {
    txnId: 'balance_transaction_id',
    sourceId: 'source_id',
    reference: ['transfer_metadata[payment_id]', 'transfer_metadata[generation]'],
    kind: 'reporting_category',
    gross: 'gross',
    fee: 'fee',
    net: 'net',
    currency: 'currency',
    booked: 'created_utc',
    available: 'available_on_utc',
    batch: 'automatic_payout_id',
  },
  optional: ['available_on_utc', 'automatic_payout_id'],
  kinds: {
    transfer: 'payment',
    transfer_reversal: 'return',
    charge: 'other',
    refund: 'other',
    dispute: 'other',
    dispute_reversal: 'other',
    fee: 'other',
    network_cost: 'other',
    payout: 'other',
    payout_reversal: 'other',
    topup: 'other',
    topup_reversal: 'other',
    other_adjustment: 'other',
    risk_reserved_funds: 'other',
  },
  lowerCaseCurrency: true,
};

export const CSV_DIALECTS: readonly CsvDialect[] = [ITEMIZED, STRIPE];
