import { parse } from 'csv-parse/sync';

/** A record never spans more physical lines than this: an unclosed quote must not swallow the file. */
const MOST_JOINED = 8;
/** No row of a settlement file is longer. */
const MOST_LINE_CHARS = 65_536;
/** Enough rows at once that a call of the parser costs nothing, few enough that memory stays flat. */
const LINES_AT_ONCE = 1_000;

/** One record of the file: its fields, or why it has none. Empty lines are not records. */
export type CsvRecord =
  | { readonly kind: 'fields'; readonly fields: readonly string[]; readonly isCutOff: boolean }
  | { readonly kind: 'broken'; readonly reason: 'quotes' | 'too_long' };

interface Line {
  readonly text: string;
  /** The file ends in this line without a line feed. */
  readonly isCutOff: boolean;
  readonly isTooLong: boolean;
}

/** Physical lines, in portions; without carriage returns. Memory: one chunk and one line. */
async function* physicalLines(chunks: AsyncIterable<string>): AsyncGenerator<readonly Line[]> {
  let carry = '';
  let tooLong = false;
  for await (const chunk of chunks) {
    const parts = (carry + chunk).split('\n');
    carry = parts.pop() ?? '';
    const lines = parts.map((part, i) => lineOf(part, { isCutOff: false, tooLong: tooLong && i === 0 }));
    if (parts.length > 0) tooLong = false;
    if (carry.length > MOST_LINE_CHARS) {
      carry = '';
      tooLong = true;
    }
    if (lines.length > 0) yield lines;
  }
  if (carry !== '' || tooLong) yield [lineOf(carry, { isCutOff: true, tooLong })];
}

function lineOf(part: string, of: { readonly isCutOff: boolean; readonly tooLong: boolean }): Line {
  const text = part.endsWith('\r') ? part.slice(0, -1) : part;
  return { text, isCutOff: of.isCutOff, isTooLong: of.tooLong || text.length > MOST_LINE_CHARS };
}

function hasOpenQuote(text: string): boolean {
  let isOpen = false;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) isOpen = !isOpen;
  return isOpen;
}

/**
 * The records of a CSV file (RFC 4180), in portions. Quoted text is read by csv-parse; a line without
 * a quote is split at its separators, which is the same and many times faster. A stray quote costs its
 * own line and no other: what follows is read again from the next physical line.
 * @param columns how many fields a record should have, known after the header: tells a record that
 * was joined by a stray quote from one that holds line feeds lawfully.
 */
export async function* csvRecords(
  chunks: AsyncIterable<string>,
  options: { readonly delimiter: string; readonly columns: () => number | null },
): AsyncGenerator<readonly CsvRecord[]> {
  let waiting: Line[] = [];
  for await (const lines of physicalLines(chunks)) {
    for (let at = 0; at < lines.length; at += LINES_AT_ONCE) {
      waiting.push(...lines.slice(at, at + LINES_AT_ONCE));
      const { records, rest } = readLines(waiting, options, false);
      waiting = rest;
      if (records.length > 0) yield records;
    }
  }
  const { records } = readLines(waiting, options, true);
  if (records.length > 0) yield records;
}

interface ReadLines {
  readonly records: CsvRecord[];
  /** Lines of a record that may go on in the next portion. */
  readonly rest: Line[];
}

function readLines(
  lines: readonly Line[],
  options: { readonly delimiter: string; readonly columns: () => number | null },
  isEnd: boolean,
): ReadLines {
  const records: CsvRecord[] = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (line === undefined) break;
    if (line.isTooLong) {
      records.push({ kind: 'broken', reason: 'too_long' });
      at += 1;
    } else if (line.text.trim() === '') {
      at += 1;
    } else if (!line.text.includes('"')) {
      records.push({ kind: 'fields', fields: line.text.split(options.delimiter), isCutOff: line.isCutOff });
      at += 1;
    } else {
      const run = readRun(lines, at, options.delimiter);
      if (run !== null) {
        records.push(...run);
        at += run.length;
        continue;
      }
      const joined = joinQuoted(lines, at, options);
      if (joined === 'needs_more' && !isEnd) return { records, rest: lines.slice(at) };
      if (joined === 'needs_more' || joined === null) {
        records.push({ kind: 'broken', reason: 'quotes' });
        at += 1;
      } else {
        records.push(joined.record);
        at += joined.lines;
      }
    }
  }
  return { records, rest: [] };
}

/** Lines with closed quotes that follow each other, in one call of the parser; null: read them one by one. */
function readRun(lines: readonly Line[], from: number, delimiter: string): readonly CsvRecord[] | null {
  let to = from;
  for (let line = lines[to]; line !== undefined && isQuotedWhole(line); line = lines[++to]);
  if (to - from < 2) return null;
  const run = lines.slice(from, to);
  const parsed = parseAll(run.map((line) => line.text).join('\n'), delimiter);
  if (parsed?.length !== run.length) return null;
  return run.map((line, i) => ({ kind: 'fields', fields: parsed[i] ?? [], isCutOff: line.isCutOff }));
}

function isQuotedWhole(line: Line): boolean {
  return !line.isTooLong && line.text.includes('"') && !hasOpenQuote(line.text);
}

/** The quoted record that begins at this line; null: none can be read; needs_more: its end is not here yet. */
function joinQuoted(
  lines: readonly Line[],
  from: number,
  options: { readonly delimiter: string; readonly columns: () => number | null },
): { readonly record: CsvRecord; readonly lines: number } | 'needs_more' | null {
  let text = '';
  let isOpen = false;
  for (let count = 1; count <= MOST_JOINED; count++) {
    const line = lines[from + count - 1];
    if (line === undefined) return 'needs_more';
    text = count === 1 ? line.text : `${text}\n${line.text}`;
    isOpen = isOpen !== hasOpenQuote(line.text);
    if (isOpen) continue;
    const fields = parseOne(text, options.delimiter);
    const wanted = options.columns();
    if (fields === null || (count > 1 && wanted !== null && fields.length !== wanted)) return null;
    return { record: { kind: 'fields', fields, isCutOff: line.isCutOff }, lines: count };
  }
  return null;
}

function parseOne(text: string, delimiter: string): readonly string[] | null {
  const records = parseAll(text, delimiter);
  return records?.length === 1 ? (records[0] ?? null) : null;
}

/** Null when this is no CSV; the caller reports the line. */
function parseAll(text: string, delimiter: string): readonly string[][] | null {
  try {
    return parse(text, { delimiter, relax_column_count: true });
  } catch {
    return null;
  }
}
