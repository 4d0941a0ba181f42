import { BUCKETS, type Bucket } from '../../src/reconciliation/settlement-line.js';

/**
 * Writes settlement files with injected discrepancies and the sheet of right answers beside them. It
 * shares the names of the buckets with the product and nothing else: amounts, rules and the file's
 * form are written here again, so that one mistake cannot hide in both.
 */

/** A payment as the generator's world has it. */
export interface WorldPayment {
  readonly id: string;
  readonly amount: bigint;
  readonly currency: 'EUR' | 'JPY' | 'KWD';
  readonly providerRef: string;
  /** Epoch ms of the submission start. */
  readonly startedAtMs: number;
  readonly state: 'succeeded' | 'unknown' | 'submitted' | 'needs_review' | 'failed' | 'cancelled';
}

/** What a right reconciliation says of a row; `row` null: of a payment that no row tells of. */
export interface Answer {
  readonly row: number | null;
  readonly bucket: Bucket;
  readonly paymentId: string | null;
}

export interface Generated {
  /** The text of the file. */
  readonly csv: string;
  readonly rows: number;
  /** Every discrepancy, and nothing else. */
  readonly answers: readonly Answer[];
}

/** Small, fast and good enough: the same seed gives the same file (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const EXPONENT = { EUR: 2, JPY: 0, KWD: 3, USD: 2 } as const;
const DAY_MS = 86_400_000;

function decimal(minor: bigint, currency: keyof typeof EXPONENT): string {
  const exponent = EXPONENT[currency];
  const digits = (minor < 0n ? -minor : minor).toString().padStart(exponent + 1, '0');
  const text = exponent === 0 ? digits : `${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
  return minor < 0n ? `-${text}` : text;
}

const iso = (ms: number): string => new Date(ms).toISOString();

interface Row {
  txn: string;
  source: string;
  reference: string;
  kind: string;
  gross: string;
  fee: string;
  net: string;
  currency: string;
  bookedMs: number;
}

const HEADER = 'provider_txn_id,source_id,our_reference,kind,gross,fee,net,currency,booked,available,batch';

function lineOf(row: Row, batch: string): string {
  const fields = [row.txn, row.source, row.reference, row.kind, row.gross, row.fee, row.net, row.currency];
  return [...fields, iso(row.bookedMs), iso(row.bookedMs + DAY_MS), batch].join(',');
}

function rowOf(payment: WorldPayment, txn: string): Row {
  const fee = EXPONENT[payment.currency] === 0 ? 1n : 25n;
  return {
    txn,
    source: payment.providerRef,
    reference: `${payment.id}/1`,
    kind: 'payment',
    gross: decimal(-payment.amount, payment.currency),
    fee: decimal(fee, payment.currency),
    net: decimal(-payment.amount - fee, payment.currency),
    currency: payment.currency,
    bookedMs: payment.startedAtMs + 3_600_000,
  };
}

/** What can be wrong with a row, each with the bucket that it belongs to. */
export const DISCREPANCIES = [
  'other_amount',
  'other_currency',
  'other_fee',
  'flipped_sign',
  'no_reference',
  'foreign_reference',
  'second_object',
  'wrong_generation',
  'paid_after_failure',
  'paid_after_cancel',
  'left_out',
  'booked_late',
  'returned',
  'same_row_twice',
  'same_id_other_content',
  'bad_amount',
  'bad_currency',
  'missing_columns',
  'stray_quote',
  'unknown_kind',
] as const;
export type Discrepancy = (typeof DISCREPANCIES)[number];

/** States in which a payment must be for a discrepancy to be what it is called. */
function fits(what: Discrepancy, payment: WorldPayment): boolean {
  if (what === 'paid_after_failure') return payment.state === 'failed';
  if (what === 'paid_after_cancel') return payment.state === 'cancelled';
  return payment.state === 'succeeded';
}

interface Sheet {
  readonly rows: string[];
  readonly answers: Answer[];
}

function push(sheet: Sheet, text: string, bucket: Bucket | null, paymentId: string | null): void {
  sheet.rows.push(text);
  if (bucket !== null) sheet.answers.push({ row: sheet.rows.length, bucket, paymentId });
}

/** Writes the rows of one payment with one discrepancy. */
function inject(sheet: Sheet, what: Discrepancy, payment: WorldPayment, n: number, batch: string): void {
  const row = rowOf(payment, `txn_${n}`);
  const { id } = payment;
  const fee = EXPONENT[payment.currency] === 0 ? 1n : 25n;
  const write = (changed: Partial<Row>): string => lineOf({ ...row, ...changed }, batch);
  const missing = (): void =>
    void sheet.answers.push({ row: null, bucket: 'missing_at_provider', paymentId: id });
  switch (what) {
    case 'other_amount': {
      const gross = -payment.amount - 1n;
      const money = { gross: decimal(gross, payment.currency), net: decimal(gross - fee, payment.currency) };
      return push(sheet, write(money), 'amount_differs', id);
    }
    case 'other_currency':
      return push(
        sheet,
        write({ currency: 'USD', gross: '-1.00', fee: '0.00', net: '-1.00' }),
        'currency_differs',
        id,
      );
    case 'other_fee':
      return push(sheet, write({ net: decimal(-payment.amount, payment.currency) }), 'fee_differs', id);
    case 'flipped_sign': {
      const money = {
        gross: decimal(payment.amount, payment.currency),
        net: decimal(payment.amount - fee, payment.currency),
      };
      return push(sheet, write(money), 'sign_flipped', id);
    }
    case 'no_reference':
      push(sheet, write({ source: `po_none_${n}`, reference: '' }), 'unexpected_at_provider', null);
      return missing();
    case 'foreign_reference':
      push(
        sheet,
        write({ source: `po_none_${n}`, reference: `pay_${'a'.repeat(26)}${base32(n)}/1` }),
        'unexpected_at_provider',
        null,
      );
      return missing();
    case 'second_object':
      push(sheet, write({}), null, null);
      return push(
        sheet,
        write({ txn: `txn_${n}_again`, source: `po_again_${n}` }),
        'unexpected_at_provider',
        id,
      );
    case 'wrong_generation':
      push(sheet, write({ source: '', reference: `${id}/2` }), 'unexpected_at_provider', id);
      return undefined;
    case 'paid_after_failure':
    case 'paid_after_cancel':
      return push(sheet, write({}), 'unexpected_at_provider', id);
    case 'left_out':
      return missing();
    case 'booked_late':
      return push(sheet, write({ bookedMs: payment.startedAtMs + 3 * DAY_MS }), 'late', id);
    case 'returned': {
      push(sheet, write({}), null, null);
      const money = {
        gross: decimal(payment.amount, payment.currency),
        fee: decimal(0n, payment.currency),
        net: decimal(payment.amount, payment.currency),
      };
      const back = { ...money, txn: `txn_${n}_back`, source: `re_${n}`, kind: 'return' };
      return push(sheet, write({ ...back, bookedMs: row.bookedMs + 1_000 }), 'returned', id);
    }
    case 'same_row_twice':
      push(sheet, write({}), null, null);
      return push(sheet, write({}), 'duplicate', null);
    case 'same_id_other_content':
      push(sheet, write({}), null, null);
      return push(sheet, write({ source: `po_other_${n}` }), 'duplicate', null);
    case 'bad_amount':
      push(sheet, write({ gross: '-1e3' }), 'unreadable', null);
      return missing();
    case 'bad_currency':
      push(sheet, write({ currency: 'EURO' }), 'unreadable', null);
      return missing();
    case 'missing_columns':
      push(sheet, write({}).split(',').slice(0, 6).join(','), 'unreadable', null);
      return missing();
    case 'stray_quote':
      push(sheet, `"${write({})}`, 'unreadable', null);
      return missing();
    case 'unknown_kind':
      push(sheet, write({ kind: 'mystery' }), 'unreadable', null);
      return missing();
  }
}

function base32(n: number): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz234567';
  let text = '';
  for (let rest = n, i = 0; i < 6; i++, rest = Math.floor(rest / 32)) text += letters[rest % 32];
  return text;
}

/** A fee of the provider's own: no payment, yet it says how far the report goes. */
function feeLine(txn: string, bookedMs: number): string {
  const money = { gross: '-1.00', fee: '0.00', net: '-1.00', currency: 'EUR' };
  return lineOf({ txn, source: '', reference: '', kind: 'fee', ...money, bookedMs }, 'fees');
}

/**
 * A file over these payments with `discrepancies` of them injected at payments that the seed chooses,
 * all kinds in turn. Payments that are not chosen get a right row if their provider executed them.
 * The report begins an hour before the first of them.
 * @param cutOffMs where the report ends; payments that started two days before must be in it.
 */
export function generateSettlement(options: {
  readonly seed: number;
  readonly payments: readonly WorldPayment[];
  readonly discrepancies: number;
  readonly cutOffMs: number;
}): Generated {
  const random = seeded(options.seed);
  const order = options.payments
    .map((payment) => ({ payment, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ payment }) => payment);
  const chosen = new Map<string, Discrepancy>();
  for (let i = 0; chosen.size < options.discrepancies; i++) {
    const what = DISCREPANCIES[i % DISCREPANCIES.length] ?? 'left_out';
    const payment = order.find((each) => !chosen.has(each.id) && fits(what, each));
    if (payment) chosen.set(payment.id, what);
    else if (i > options.discrepancies * DISCREPANCIES.length) throw new Error('too few payments to spoil');
  }
  const sheet: Sheet = { rows: [], answers: [] };
  const begin = Math.min(...options.payments.map((payment) => payment.startedAtMs)) - 3_600_000;
  push(sheet, feeLine('txn_begin', begin), null, null);
  for (const [n, payment] of options.payments.entries()) {
    const batch = `batch_${Math.floor(n / 500)}`;
    const what = chosen.get(payment.id);
    if (what !== undefined) inject(sheet, what, payment, n, batch);
    else if (!['failed', 'cancelled'].includes(payment.state)) {
      push(sheet, lineOf(rowOf(payment, `txn_${n}`), batch), null, null);
    }
  }
  push(sheet, feeLine('txn_end', options.cutOffMs), null, null);
  return { csv: [HEADER, ...sheet.rows, ''].join('\n'), rows: sheet.rows.length, answers: sheet.answers };
}

/** Rows in each bucket of the sheet. */
export function answerCounts(answers: readonly Answer[]): Readonly<Record<Bucket, number>> {
  const counts = Object.fromEntries(BUCKETS.map((bucket) => [bucket, 0])) as Record<Bucket, number>;
  for (const { bucket } of answers) counts[bucket]++;
  return counts;
}
