import { exponentOf, parseCurrency } from '../domain/currency.js';
import { csvRecords, type CsvRecord } from './csv-lines.js';
import { CSV_DIALECTS, type CsvDialect } from './csv-settlement.dialects.js';
import { parseDecimalMinor } from './decimal-amount.js';
import {
  readReference,
  UnusableFile,
  type Reading,
  type SettlementLine,
  type Unreadable,
} from './settlement-line.js';
import { parseSettlementTime } from './settlement-time.js';

/** Ids of providers are shorter by far; a longer one would not fit an index. */
const MOST_ID_CHARS = 255;
const SEPARATORS = [',', ';', '\t'];

/** Where the fields of a row are, after the header was read. */
interface Layout {
  readonly dialect: CsvDialect;
  readonly width: number;
  readonly at: (column: string) => number;
}

/**
 * Reads itemized balance activity, in portions and in the order of the file. Every row after the
 * header is one reading: a line, or unreadable with the reason; none is left out, and none that is
 * broken takes a neighbour with it.
 * @param chunks UTF-8 text of the file from its beginning.
 * @throws UnusableFile when the header is none that is known.
 */
export async function* readCsvSettlement(chunks: AsyncIterable<string>): AsyncGenerator<readonly Reading[]> {
  const source = chunks[Symbol.asyncIterator]();
  const first = await source.next();
  const start = first.done === true ? '' : first.value;
  const delimiter = delimiterOf(start);
  let layout: Layout | null = null;
  let rowNo = 0;
  const records = csvRecords(startingWith(start, source), {
    delimiter,
    columns: () => layout?.width ?? null,
  });
  for await (const portion of records) {
    const readings: Reading[] = [];
    for (const record of portion) {
      if (layout === null) layout = layoutOf(record);
      else readings.push(readRecord(record, layout, ++rowNo));
    }
    if (readings.length > 0) yield readings;
  }
  if (layout === null) throw new UnusableFile('The file is empty: it has no header.');
}

async function* startingWith(start: string, rest: AsyncIterator<string>): AsyncGenerator<string> {
  yield start;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

/** The separator that the header has most of. */
function delimiterOf(start: string): string {
  const header = start.slice(0, start.indexOf('\n') === -1 ? undefined : start.indexOf('\n'));
  const count = (separator: string): number => header.split(separator).length;
  return SEPARATORS.reduce((best, each) => (count(each) > count(best) ? each : best));
}

function layoutOf(record: CsvRecord): Layout {
  const names = record.kind === 'fields' ? record.fields.map((name) => name.trim()) : [];
  for (const dialect of CSV_DIALECTS) {
    const wanted = Object.values(dialect.columns).flat();
    if (!wanted.every((name) => names.includes(name) || dialect.optional.includes(name))) continue;
    const twice = wanted.find((name) => names.filter((each) => each === name).length > 1);
    if (twice !== undefined) throw new UnusableFile(`The header names the column ${twice} twice.`);
    const places = new Map(names.map((name, i) => [name, i]));
    return { dialect, width: names.length, at: (column) => places.get(column) ?? -1 };
  }
  const known = CSV_DIALECTS.map((each) => each.name).join('; ');
  throw new UnusableFile(`The header is none of a known settlement report (${known}).`);
}

function readRecord(record: CsvRecord, layout: Layout, rowNo: number): Reading {
  if (record.kind === 'broken') return { kind: 'unreadable', rowNo, reason: record.reason };
  if (record.fields.length !== layout.width) {
    const reason = record.isCutOff && record.fields.length < layout.width ? 'truncated' : 'columns';
    return { kind: 'unreadable', rowNo, reason };
  }
  const line = readFields(record.fields, layout, rowNo);
  return typeof line === 'string' ? { kind: 'unreadable', rowNo, reason: line } : { kind: 'line', line };
}

/** A line, or the reason why it is none. */
function readFields(
  fields: readonly string[],
  { dialect, at }: Layout,
  rowNo: number,
): SettlementLine | Unreadable {
  const { columns } = dialect;
  const field = (column: string): string => fields[at(column)]?.trim() ?? '';
  // U+FFFD stands for bytes that are no UTF-8; Postgres keeps no NUL.
  if (fields.some((each) => each.includes('\uFFFD') || each.includes('\0'))) return 'encoding';
  const txnId = field(columns.txnId);
  const sourceId = field(columns.sourceId) || null;
  if (txnId === '' || txnId.length > MOST_ID_CHARS) return 'txn_id';
  if (sourceId !== null && sourceId.length > MOST_ID_CHARS) return 'txn_id';
  const kind = Object.hasOwn(dialect.kinds, field(columns.kind)) ? dialect.kinds[field(columns.kind)] : null;
  if (kind == null) return 'kind';
  const code = field(columns.currency);
  const parsed = parseCurrency(dialect.lowerCaseCurrency ? code.toUpperCase() : code);
  if (parsed.kind !== 'currency') return 'currency';
  const exponent = exponentOf(parsed.currency);
  const grossMinor = parseDecimalMinor(field(columns.gross), exponent);
  const feeMinor = parseDecimalMinor(field(columns.fee), exponent);
  const netMinor = parseDecimalMinor(field(columns.net), exponent);
  if (grossMinor === null || feeMinor === null || netMinor === null) return 'amount';
  const bookedAt = parseSettlementTime(field(columns.booked));
  const available = field(columns.available);
  const availableAt = available === '' ? null : parseSettlementTime(available);
  if (bookedAt === null || (available !== '' && availableAt === null)) return 'time';
  return {
    rowNo,
    txnId,
    sourceId,
    ...readReference(referenceText(columns.reference, field)),
    kind,
    grossMinor,
    feeMinor,
    netMinor,
    currency: parsed.currency,
    bookedAt,
    availableAt,
    batch: field(columns.batch).slice(0, MOST_ID_CHARS) || null,
  };
}

function referenceText(
  column: CsvDialect['columns']['reference'],
  field: (name: string) => string,
): string | null {
  const text = typeof column === 'string' ? field(column) : column.map(field).join('/');
  return text === '' || text === '/' ? null : text.slice(0, MOST_ID_CHARS);
}
