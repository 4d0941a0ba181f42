import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import type { WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { ERROR_KINDS, placeErrors, spoil } from './settlement-error.js';
import type { ErrorKind } from './settlement-error.js';
import { rowOf } from './settlement-row.js';
import type { SettlementRow } from './settlement-row.js';
import { WRITERS } from './settlement-text.js';
import type { SettlementFormat } from './settlement-text.js';

/** A large file of invented payouts. */
export interface GeneratorOrder {
  readonly rows: number;
  readonly errors: number;
  readonly seed: string;
  /** Where the file goes; beside it `<file>.payments.csv` and `<file>.answers.jsonl`. */
  readonly file: string;
  readonly format: SettlementFormat;
  /** Booking time of the first payout, epoch milliseconds; the others follow a second apart. */
  readonly from: number;
}

export interface Generated {
  readonly file: string;
  /** The truth: what was really paid, one line per payout. */
  readonly paymentsFile: string;
  /** What is wrong in the file. */
  readonly answersFile: string;
  readonly payments: number;
  /** Rows in the file, without its header. */
  readonly rows: number;
  readonly errors: Readonly<Record<ErrorKind, number>>;
}

const CURRENCIES = ['EUR', 'USD', 'GBP', 'JPY', 'KWD'] as const;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
/** Text is gathered up to this length before it goes to the file. */
const CHUNK_LENGTH = 64 * 1024;

/**
 * Writes a settlement file of invented payouts, the payments they belong to and the answer sheet. A
 * function of its order: the same order gives the same bytes. Streams: memory does not grow with the
 * number of rows, only with that of errors.
 * @throws RangeError for more errors than rows; Error when a file cannot be written.
 */
export async function generateSettlement(order: GeneratorOrder): Promise<Generated> {
  const places = placeErrors({ seed: order.seed, count: order.errors }, order.rows);
  const writer = WRITERS[order.format];
  const paymentsFile = `${order.file}.payments.csv`;
  const answersFile = `${order.file}.answers.jsonl`;
  const [rows, payments, answers] = [order.file, paymentsFile, answersFile].map((path) => new TextFile(path));
  if (!rows || !payments || !answers) throw new Error('Three files were expected.');
  const errors = Object.fromEntries(ERROR_KINDS.map((kind) => [kind, 0])) as Record<ErrorKind, number>;
  let written = 0;
  await rows.write(writer.head('acct_generated'));
  await payments.write('reference,provider_ref,amount_minor,currency,booked\n');
  for (let i = 0; i < order.rows; i += 1) {
    const row = inventedRow(order, i);
    const paid = [
      row.reference,
      row.sourceId,
      -row.grossMinor,
      row.currency,
      new Date(row.bookedAt).toISOString(),
    ];
    await payments.write(`${paid.join(',')}\n`);
    const error = places.get(i);
    const spoiled = error === undefined ? null : spoil(row, error);
    for (const told of spoiled?.rows ?? [row]) {
      await rows.write(writer.row(told));
      written += 1;
    }
    if (spoiled) {
      errors[spoiled.answer.error] += 1;
      await answers.write(`${JSON.stringify(spoiled.answer)}\n`);
    }
  }
  await rows.write(writer.foot);
  await Promise.all([rows.end(), payments.end(), answers.end()]);
  return { file: order.file, paymentsFile, answersFile, payments: order.rows, rows: written, errors };
}

function inventedRow({ seed, from }: GeneratorOrder, i: number): SettlementRow {
  const digest = hash('sha256', `${seed}\npayment\n${i}`, 'buffer');
  const letters = Array.from(digest, (byte) => BASE32[byte & 31]).join('');
  const id = `po_${digest.toString('hex', 0, 12)}`;
  return rowOf({
    id,
    sourceId: id,
    reference: `pay_${letters}/1`,
    kind: 'payout',
    amount: 1 + (digest.readUInt32BE(0) % 10_000_000),
    currency: CURRENCIES[(digest[4] ?? 0) % CURRENCIES.length] ?? 'EUR',
    bookedAt: from + i * 1000,
  });
}

/** A file that is written in large pieces and waits for the disk. */
class TextFile {
  private readonly stream: WriteStream;
  private readonly closed: Promise<void>;
  private text = '';

  constructor(path: string) {
    this.stream = createWriteStream(path);
    this.closed = finished(this.stream);
    // Whoever writes or ends next gets the error; alone it must not end the process.
    this.closed.catch(() => undefined);
  }

  async write(text: string): Promise<void> {
    this.text += text;
    if (this.text.length >= CHUNK_LENGTH) await this.flush();
  }

  async end(): Promise<void> {
    await this.flush();
    this.stream.end();
    await this.closed;
  }

  private async flush(): Promise<void> {
    const { text } = this;
    this.text = '';
    if (text === '' || this.stream.write(text)) return;
    await Promise.race([once(this.stream, 'drain'), this.closed]);
  }
}
