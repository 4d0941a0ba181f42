import { decimalText } from './decimal-text.js';
import type { SettlementRow } from './settlement-row.js';

export type SettlementFormat = 'csv' | 'camt053';

/** How one format writes a file: what comes first, each row, what comes last. */
export interface SettlementWriter {
  readonly contentType: string;
  readonly head: (account: string) => string;
  readonly row: (row: SettlementRow) => string;
  readonly foot: string;
}

const COLUMNS = [
  'provider_txn_id',
  'source_id',
  'our_reference',
  'kind',
  'gross',
  'fee',
  'net',
  'currency',
  'booked',
  'available',
  'batch',
];

/** The itemized balance activity: RFC 4180, times in UTC, amounts as decimal text. */
const CSV: SettlementWriter = {
  contentType: 'text/csv; charset=utf-8',
  head: () => `${COLUMNS.join(',')}\r\n`,
  row: (row) => {
    const { currency } = row;
    const fields = [
      row.txnId,
      row.sourceId,
      row.reference,
      row.kind,
      decimalText(row.grossMinor, currency),
      decimalText(row.feeMinor, currency),
      decimalText(row.netMinor, currency),
      currency,
      timeText(row.bookedAt),
      timeText(row.availableAt),
      row.batch,
    ];
    return `${fields.map(csvField).join(',')}\r\n`;
  },
  foot: '',
};

/**
 * The same rows as a bank statement (ISO 20022 camt.053.001.08). An end-to-end id has at most 35
 * characters, so a longer reference stands in the remittance information. The fee is an entry of its
 * own, as banks book it.
 */
const CAMT: SettlementWriter = {
  contentType: 'application/xml; charset=utf-8',
  head: (account) =>
    `<?xml version="1.0" encoding="UTF-8"?>\n` +
    `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">\n<BkToCstmrStmt>\n` +
    `<GrpHdr><MsgId>${xmlText(account)}</MsgId></GrpHdr>\n` +
    `<Stmt><Id>${xmlText(account)}</Id><Acct><Id><Othr><Id>${xmlText(account)}</Id></Othr></Id></Acct>\n`,
  row: (row) => {
    const entry = camtEntry({
      txnId: row.txnId,
      minor: row.grossMinor,
      row,
      code: row.kind === 'return' ? 'RRTN' : 'ESCT',
      family: row.kind === 'return' ? 'RCDT' : 'ICDT',
      details: camtDetails(row),
    });
    if (row.feeMinor === 0n) return entry;
    const txnId = `${row.txnId}_fee`;
    const charge = { txnId, minor: -row.feeMinor, row, code: 'CHRG', family: 'MDOP', details: '' };
    return entry + camtEntry(charge);
  },
  foot: '</Stmt>\n</BkToCstmrStmt>\n</Document>\n',
};

export const WRITERS: Readonly<Record<SettlementFormat, SettlementWriter>> = Object.freeze({
  csv: CSV,
  camt053: CAMT,
});

interface CamtEntry {
  readonly txnId: string;
  /** Negative: money left. */
  readonly minor: bigint;
  readonly row: SettlementRow;
  readonly family: string;
  readonly code: string;
  readonly details: string;
}

function camtEntry({ txnId, minor, row, family, code, details }: CamtEntry): string {
  const amount = decimalText(minor < 0n ? -minor : minor, row.currency);
  return (
    `<Ntry><NtryRef>${xmlText(row.batch)}</NtryRef><Amt Ccy="${row.currency}">${amount}</Amt>` +
    `<CdtDbtInd>${minor < 0n ? 'DBIT' : 'CRDT'}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>` +
    `<BookgDt><DtTm>${timeText(row.bookedAt)}</DtTm></BookgDt>` +
    `<ValDt><DtTm>${timeText(row.availableAt)}</DtTm></ValDt><AcctSvcrRef>${xmlText(txnId)}</AcctSvcrRef>` +
    `<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>${family}</Cd><SubFmlyCd>${code}</SubFmlyCd></Fmly></Domn></BkTxCd>` +
    `${details}</Ntry>\n`
  );
}

function camtDetails({ txnId, sourceId, reference, kind }: SettlementRow): string {
  const endToEnd = reference.length <= 35 ? reference : 'NOTPROVIDED';
  const returned = kind === 'return' ? '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>' : '';
  return (
    `<NtryDtls><TxDtls><Refs><AcctSvcrRef>${xmlText(txnId)}</AcctSvcrRef>` +
    `<EndToEndId>${xmlText(endToEnd)}</EndToEndId><TxId>${xmlText(sourceId)}</TxId></Refs>` +
    `<RmtInf><Ustrd>${xmlText(reference)}</Ustrd></RmtInf>${returned}</TxDtls></NtryDtls>`
  );
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
