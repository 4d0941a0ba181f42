/**
 * What a settlement file says, in one form for all formats, and what we make of it.
 */

/** payment: money that left for one payment. return: it came back. other: fees and the like, no payment of ours. */
export type LineKind = 'payment' | 'return' | 'other';

/** One readable row. Amounts in minor units, signed as the balance moved: a payment is negative. */
export interface SettlementLine {
  /** 1 is the first row after the header (csv), the first booked transaction (camt.053). */
  readonly rowNo: number;
  /** The provider's own id of the line, unique at the provider. */
  readonly txnId: string;
  /** The provider's object that it is about, our `provider_ref`; null: not told. */
  readonly sourceId: string | null;
  /** Our reference as it was written; null: not told. */
  readonly reference: string | null;
  /** Payment id and generation of a reference of our form; null: it has none. */
  readonly paymentId: string | null;
  readonly generation: number | null;
  readonly kind: LineKind;
  readonly grossMinor: bigint;
  /** What the provider kept; net is gross less fee. */
  readonly feeMinor: bigint;
  readonly netMinor: bigint;
  readonly currency: string;
  /** RFC 3339 texts in UTC, by the provider's clock. */
  readonly bookedAt: string;
  readonly availableAt: string | null;
  readonly batch: string | null;
}

/** Why a row could not be read. Codes: they are stored and shown, the row's text is not. */
export type Unreadable =
  | 'columns'
  | 'truncated'
  | 'quotes'
  | 'too_long'
  | 'encoding'
  | 'txn_id'
  | 'kind'
  | 'currency'
  | 'amount'
  | 'time'
  | 'sum';

export type Reading =
  | { readonly kind: 'line'; readonly line: SettlementLine }
  | { readonly kind: 'unreadable'; readonly rowNo: number; readonly reason: Unreadable };

/**
 * A file that cannot be reconciled at all: another format, or broken so that nothing after it can be
 * told. `message` is a sentence for a person and holds nothing of the file's content.
 */
export class UnusableFile extends Error {
  override readonly name = 'UnusableFile';
}

/** Where a row of a file, or a payment that no row tells of, belongs. */
export const BUCKETS = [
  'matched',
  'late',
  'returned',
  'other',
  'amount_differs',
  'currency_differs',
  'fee_differs',
  'sign_flipped',
  'unexpected_at_provider',
  'missing_at_provider',
  'duplicate',
  'unreadable',
] as const;
export type Bucket = (typeof BUCKETS)[number];

/** Buckets that need nobody: all others are discrepancies. */
export const CLEAN_BUCKETS: readonly Bucket[] = ['matched', 'other'];

/** A payment executed at t is booked by then; only after it is it late or missing. */
export const BOOKING_LAG_MS = 2 * 86_400_000;

/** Our reference at providers: payment id, slash, generation. */
const REFERENCE = /(?<![a-z0-9_])(pay_[a-z2-7]{32})\/([1-9][0-9]{0,3})(?![0-9])/;

/**
 * Reads a reference of our form, alone or inside a longer text such as a remittance information.
 * @returns nulls for every other text.
 */
export function readReference(
  text: string | null,
): Pick<SettlementLine, 'reference' | 'paymentId' | 'generation'> {
  const found = text === null ? null : REFERENCE.exec(text);
  if (!found) return { reference: text, paymentId: null, generation: null };
  return { reference: found[0], paymentId: found[1] ?? null, generation: Number(found[2]) };
}
