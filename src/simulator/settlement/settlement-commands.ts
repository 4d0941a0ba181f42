import { isAbsolute } from 'node:path';
import { answerOf, refusal } from '../control-port.js';
import type { ControlAnswer, ControlCommand } from '../control-port.js';
import { isRecord } from '../fault.js';
import type { Payout, PayoutBook } from '../payout-book.js';
import type { ErrorOrder } from './settlement-error.js';
import { generateSettlement } from './settlement-generator.js';
import type { GeneratorOrder } from './settlement-generator.js';
import { settle } from './settlement-of-ledger.js';
import type { SettlementSpan } from './settlement-of-ledger.js';
import { WRITERS } from './settlement-text.js';
import type { SettlementFormat } from './settlement-text.js';

/** Booking time of the first invented payout, so that one order always gives the same bytes. */
const GENERATED_FROM = '2026-01-01T00:00:00Z';
const MOST_ROWS = 10_000_000;

interface Asked {
  readonly span: SettlementSpan;
  readonly format: SettlementFormat;
  readonly errors: ErrorOrder | null;
}

/** `GET /settlement`, `GET /settlement/answers` and `POST /settlement/generate`. */
export function settlementCommands(
  book: PayoutBook,
  current: (payout: Payout) => Payout,
  accountNames: ReadonlySet<string>,
): [string, ControlCommand][] {
  const answered = (query: URLSearchParams, tell: (asked: Asked) => ControlAnswer): ControlAnswer => {
    const asked = readAsked(query, accountNames);
    if (typeof asked === 'string') return refusal(400, asked);
    return orRefused(() => tell(asked));
  };
  return [
    [
      'GET /settlement',
      (query) =>
        answered(query, ({ span, format, errors }) => {
          const writer = WRITERS[format];
          const { rows } = settle(book, current, span, errors);
          const text = [writer.head(span.account), ...rows.map(writer.row), writer.foot].join('');
          return { status: 200, content: text, contentType: writer.contentType };
        }),
    ],
    [
      'GET /settlement/answers',
      (query) => answered(query, ({ span, errors }) => answerOf(settle(book, current, span, errors).answers)),
    ],
    [
      'POST /settlement/generate',
      async (_query, body) => {
        const order = readOrder(body);
        if (typeof order === 'string') return refusal(400, order);
        return answerOf(await generateSettlement(order));
      },
    ],
  ];
}

function orRefused(tell: () => ControlAnswer): ControlAnswer {
  try {
    return tell();
  } catch (error) {
    if (error instanceof RangeError) return refusal(400, error.message);
    throw error;
  }
}

function readAsked(query: URLSearchParams, accountNames: ReadonlySet<string>): Asked | string {
  const account = query.get('account') ?? '';
  if (!accountNames.has(account)) return `Give an account: ${[...accountNames].join(', ')}.`;
  const from = readTime(query.get('from'), -Infinity);
  const to = readTime(query.get('to'), Infinity);
  if (Number.isNaN(from) || Number.isNaN(to)) return 'from and to are RFC 3339 times or epoch milliseconds.';
  const format = query.get('format') ?? 'csv';
  if (format !== 'csv' && format !== 'camt053') return 'The format is csv or camt053.';
  const errors = query.get('errors');
  if (errors === null) return { span: { account, from, to }, format, errors: null };
  const [, seed, count] = /^(\w{1,64}):(\d{1,6})$/.exec(errors) ?? [];
  if (seed === undefined) return 'errors has the form <seed>:<count>.';
  return { span: { account, from, to }, format, errors: { seed, count: Number(count) } };
}

function readTime(text: string | null, absent: number): number {
  if (text === null) return absent;
  return /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
}

function readOrder(body: unknown): GeneratorOrder | string {
  if (!isRecord(body)) return 'Give {rows, errors, seed, file, format}.';
  const { rows, errors = 0, seed = '1', file, format = 'csv' } = body;
  if (!isCount(rows) || rows < 1 || rows > MOST_ROWS) return `rows is a whole number from 1 to ${MOST_ROWS}.`;
  if (!isCount(errors) || errors > rows) return 'errors is a whole number, at most one per row.';
  if (typeof seed !== 'string' && typeof seed !== 'number') return 'seed is a text or a number.';
  if (typeof file !== 'string' || !isAbsolute(file)) return 'file is an absolute path.';
  if (format !== 'csv' && format !== 'camt053') return 'The format is csv or camt053.';
  return { rows, errors, seed: String(seed), file, format, from: Date.parse(GENERATED_FROM) };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
