import { exponentOf, parseCurrency } from '../domain/currency.js';
import { parseDecimalMinor } from './decimal-amount.js';
import {
  readReference,
  type LineKind,
  type Reading,
  type SettlementLine,
  type Unreadable,
} from './settlement-line.js';
import { parseSettlementTime } from './settlement-time.js';
import { elementAt, textAt, xmlEntries, type XmlElement } from './xml-entries.js';

const MOST_ID_CHARS = 255;

/**
 * Reads a bank statement (ISO 20022 camt.053, any version): one line for each transaction of each
 * booked entry. An entry that is only announced (status other than BOOK) is no row.
 * @param chunks text of the file from its beginning.
 * @throws UnusableFile for what is no statement, or from where it is no XML any more: rows before that
 * were given, the file is not done.
 */
export async function* readCamt053(chunks: AsyncIterable<string>): AsyncGenerator<readonly Reading[]> {
  let rowNo = 0;
  for await (const entries of xmlEntries(chunks, { root: 'Document', entry: 'Ntry' })) {
    const readings = entries.flatMap((entry) => {
      const rows = readEntry(entry, rowNo + 1);
      rowNo += rows.length;
      return rows;
    });
    if (readings.length > 0) yield readings;
  }
}

/** `Sts` is the code itself up to version 6, and holds it in `Cd` from version 8 on. */
function isBooked(entry: XmlElement): boolean {
  return (textAt(entry, 'Sts', 'Cd') ?? textAt(entry, 'Sts')) === 'BOOK';
}

function readEntry(entry: XmlElement, firstRowNo: number): readonly Reading[] {
  if (!isBooked(entry)) return [];
  const transactions = entry.children
    .filter((child) => child.name === 'NtryDtls')
    .flatMap((details) => details.children.filter((child) => child.name === 'TxDtls'));
  const parts = transactions.length === 0 ? [null] : transactions;
  const rows = parts.map((part, i) => readTransaction(entry, part, parts.length, firstRowNo + i));
  // A booking that is not the sum of its transactions cannot be split into them: none of them is proof.
  if (!addsUp(entry, rows)) {
    return parts.map((_, i) => ({ kind: 'unreadable', rowNo: firstRowNo + i, reason: 'sum' }));
  }
  return rows;
}

function addsUp(entry: XmlElement, rows: readonly Reading[]): boolean {
  const total = moneyOf(elementAt(entry, 'Amt'));
  if (total === null) return rows.every((row) => row.kind === 'unreadable');
  const sign = isCredit(entry) ? 1n : -1n;
  let sum = 0n;
  for (const row of rows) {
    if (row.kind === 'unreadable') return true;
    // Details may be in the currency of the instruction, which cannot be added to the entry's.
    if (row.line.currency !== total.currency) return true;
    sum += row.line.grossMinor;
  }
  return sum === sign * total.minor;
}

const isCredit = (of: XmlElement): boolean => textAt(of, 'CdtDbtInd') === 'CRDT';

function moneyOf(amount: XmlElement | null): { readonly minor: bigint; readonly currency: string } | null {
  if (amount === null) return null;
  const parsed = parseCurrency(amount.attributes['Ccy'] ?? '');
  if (parsed.kind !== 'currency') return null;
  const minor = parseDecimalMinor(amount.text.trim(), exponentOf(parsed.currency));
  return minor === null || minor < 0n ? null : { minor, currency: parsed.currency };
}

function readTransaction(entry: XmlElement, part: XmlElement | null, parts: number, rowNo: number): Reading {
  const line = lineOf(entry, part, parts, rowNo);
  return typeof line === 'string' ? { kind: 'unreadable', rowNo, reason: line } : { kind: 'line', line };
}

function lineOf(
  entry: XmlElement,
  part: XmlElement | null,
  parts: number,
  rowNo: number,
): SettlementLine | Unreadable {
  const txnId = txnIdOf(entry, part, parts);
  if (txnId === null || txnId.length > MOST_ID_CHARS) return 'txn_id';
  const money = moneyOf(amountOf(entry, part, parts));
  if (money === null) return 'amount';
  const direction = textAt(part ?? entry, 'CdtDbtInd') ?? textAt(entry, 'CdtDbtInd');
  if (direction !== 'CRDT' && direction !== 'DBIT') return 'kind';
  const booked = textAt(entry, 'BookgDt', 'DtTm') ?? textAt(entry, 'BookgDt', 'Dt');
  const bookedAt = booked === null ? null : parseSettlementTime(booked);
  if (bookedAt === null) return 'time';
  const value = textAt(entry, 'ValDt', 'DtTm') ?? textAt(entry, 'ValDt', 'Dt');
  const gross = direction === 'CRDT' ? money.minor : -money.minor;
  const reference = readReference(referenceOf(part ?? entry));
  return {
    rowNo,
    txnId,
    // A bank's ids are its own; only without our reference may one of them be the object that we know.
    sourceId: part === null || reference.paymentId !== null ? null : textAt(part, 'Refs', 'TxId'),
    ...reference,
    kind: kindOf(entry, part, { isDebit: direction === 'DBIT', isOurs: reference.paymentId !== null }),
    grossMinor: gross,
    feeMinor: 0n,
    netMinor: gross,
    currency: money.currency,
    bookedAt,
    availableAt: value === null ? null : parseSettlementTime(value),
    batch: textAt(entry, 'NtryDtls', 'Btch', 'PmtInfId') ?? textAt(entry, 'NtryRef'),
  };
}

/** Sub-families of the bank transaction code that are the bank's own: charges, fees, commission, interest, taxes. */
const CHARGES = ['CHRG', 'FEES', 'COMM', 'INTR', 'TAXE'];

function isCharge(entry: XmlElement): boolean {
  return CHARGES.includes(textAt(entry, 'BkTxCd', 'Domn', 'Fmly', 'SubFmlyCd') ?? '');
}

/**
 * A debit is a payment unless it is the bank's own charge. A credit is a return when the bank says so; a
 * credit that only bears our reference is a payment whose sign is wrong, and is judged as such.
 */
function kindOf(
  entry: XmlElement,
  part: XmlElement | null,
  of: { readonly isDebit: boolean; readonly isOurs: boolean },
): LineKind {
  if (isCharge(entry)) return 'other';
  if (of.isDebit) return 'payment';
  if (isReturn(entry, part)) return 'return';
  return of.isOurs ? 'payment' : 'other';
}

/** Money that comes in is ours again only when the bank says that it is a return. */
function isReturn(entry: XmlElement, part: XmlElement | null): boolean {
  return textAt(entry, 'RvslInd') === 'true' || (part !== null && elementAt(part, 'RtrInf') !== null);
}

/** The bank's own reference; transactions of one booking that share it are told apart by their own ids. */
function txnIdOf(entry: XmlElement, part: XmlElement | null, parts: number): string | null {
  const own = part === null ? null : (textAt(part, 'Refs', 'AcctSvcrRef') ?? textAt(part, 'Refs', 'TxId'));
  const shared = textAt(entry, 'AcctSvcrRef') ?? textAt(entry, 'NtryRef');
  if (parts === 1) return own ?? shared;
  if (own !== null && own !== shared) return own;
  const endToEnd = part === null ? null : textAt(part, 'Refs', 'EndToEndId');
  return shared === null || endToEnd === null ? null : `${shared}/${endToEnd}`;
}

function amountOf(entry: XmlElement, part: XmlElement | null, parts: number): XmlElement | null {
  const own = part === null ? null : (elementAt(part, 'Amt') ?? elementAt(part, 'AmtDtls', 'TxAmt', 'Amt'));
  return own ?? (parts === 1 ? elementAt(entry, 'Amt') : null);
}

/** An end-to-end id has 35 characters, fewer than our reference: then the remittance information holds it. */
function referenceOf(of: XmlElement): string | null {
  const endToEnd = textAt(of, 'Refs', 'EndToEndId');
  const remittance = elementAt(of, 'RmtInf');
  const texts = [
    endToEnd,
    ...(remittance?.children ?? [])
      .filter((child) => child.name === 'Ustrd')
      .map((child) => child.text.trim()),
    remittance === null ? null : textAt(remittance, 'Strd', 'CdtrRefInf', 'Ref'),
  ];
  const ours = texts.find((text) => text !== null && readReference(text).paymentId !== null);
  return (ours ?? endToEnd)?.slice(0, MOST_ID_CHARS) ?? null;
}
