import pg from 'pg';
import { StorageUnavailable } from './database-errors.js';
import { DATABASE_LIMITS } from './database.js';

/**
 * Rows as Postgres stores them, one after the other, without a text, an object or a promise for each:
 * for whoever reads whole tables. All statements see one snapshot.
 */
export interface RawRows {
  /**
   * Runs `COPY (query) TO STDOUT` in binary form and calls `onRow` for each row.
   * @param query a SELECT without parameters; values in it are `literal`.
   * @returns the number of rows. @throws what `onRow` throws, after the rest was read and dropped.
   */
  copy(query: string, onRow: (row: RawRow) => void): Promise<number>;
  /** A small answer, as texts. */
  select(text: string): Promise<readonly Readonly<Record<string, string | null>>[]>;
}

/** The fields of one row in the driver's own buffer, valid until the next row. */
export interface RawRow {
  readonly bytes: Buffer;
  /** Where field i begins in `bytes`. */
  readonly start: Int32Array;
  /** Its length; -1: null. */
  readonly length: Int32Array;
}

/** A text as a literal of SQL. */
export function literal(text: string): string {
  return pg.escapeLiteral(text);
}

/** COPY's own 11 bytes, flags and the length of an extension that nobody uses. */
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
const HEADER_BYTES = SIGNATURE.length + 8;
const MOST_FIELDS = 32;

/** The form of the driver's own queries (`Client.query` takes any object with `submit`). */
class CopyOut {
  readonly done: Promise<number>;
  #resolve!: (rows: number) => void;
  #reject!: (error: Error) => void;
  #rows = 0;
  #hasHeader = false;
  #fault: Error | null = null;
  readonly #row: { bytes: Buffer; start: Int32Array; length: Int32Array } = {
    bytes: Buffer.alloc(0),
    start: new Int32Array(MOST_FIELDS),
    length: new Int32Array(MOST_FIELDS),
  };

  constructor(
    private readonly text: string,
    private readonly onRow: (row: RawRow) => void,
  ) {
    this.done = new Promise<number>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: { query(text: string): void }): void {
    connection.query(this.text);
  }

  /** Postgres sends each row as one message of its own; the header comes with the first. */
  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    if (this.#fault) return;
    try {
      this.#read(chunk);
    } catch (error) {
      this.#fault = error as Error;
    }
  }

  #read(chunk: Buffer): void {
    let at = 0;
    if (!this.#hasHeader) {
      if (chunk.length < HEADER_BYTES || SIGNATURE.compare(chunk, 0, SIGNATURE.length) !== 0) {
        throw new Error('The answer of COPY is not in the binary form.');
      }
      this.#hasHeader = true;
      at = HEADER_BYTES + chunk.readInt32BE(HEADER_BYTES - 4);
    }
    while (at < chunk.length) {
      const fields = chunk.readInt16BE(at);
      at += 2;
      if (fields === -1) return;
      at = this.#readRow(chunk, at, fields);
    }
  }

  #readRow(chunk: Buffer, from: number, fields: number): number {
    const { start, length } = this.#row;
    let at = from;
    for (let i = 0; i < fields; i++) {
      // Written out: the checked readers of a Buffer cost more than everything else here.
      const size =
        ((chunk[at] ?? 0) << 24) |
        ((chunk[at + 1] ?? 0) << 16) |
        ((chunk[at + 2] ?? 0) << 8) |
        (chunk[at + 3] ?? 0);
      at += 4;
      start[i] = at;
      length[i] = size;
      if (size > 0) at += size;
    }
    if (at > chunk.length) throw new Error('A row of COPY is longer than its message.');
    this.#row.bytes = chunk;
    this.#rows++;
    this.onRow(this.#row);
    return at;
  }

  handleError(error: Error): void {
    this.#reject(error);
  }
  handleReadyForQuery(): void {
    if (this.#fault) this.#reject(this.#fault);
    else this.#resolve(this.#rows);
  }
  handleCommandComplete(): void {}
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleEmptyQuery(): void {}
}

const SETTINGS = [
  'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
  // A whole history takes as long as it takes, and merges what indexes give in order.
  `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '60s';
   SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_hashagg = off;
   SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL search_path = pg_catalog`,
];

/**
 * Reads raw rows on a connection of its own, all of one snapshot, which keeps old row versions alive
 * until it ends. Names in its queries carry their schema.
 * @throws StorageUnavailable when Postgres cannot be reached; otherwise what `work` throws, or the error
 * of Postgres.
 */
export async function withRawRows<T>(
  of: { readonly url: string; readonly applicationName: string },
  work: (rows: RawRows) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString: of.url,
    application_name: of.applicationName,
    connectionTimeoutMillis: DATABASE_LIMITS.connectMs,
    keepAlive: true,
    options: '-c TimeZone=UTC -c DateStyle=ISO -c client_connection_check_interval=2000',
  });
  // Told by the query under way; without a listener the process would end.
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    throw new StorageUnavailable('Postgres cannot be reached', { cause: error });
  }
  try {
    for (const text of SETTINGS) await client.query(text);
    return await work({
      copy: async (query, onRow) => {
        const copy = new CopyOut(`COPY (${query}) TO STDOUT (FORMAT binary)`, onRow);
        client.query(copy as never);
        return copy.done;
      },
      select: async (text) => (await client.query<Record<string, string | null>>(text)).rows,
    });
  } finally {
    await client.end().catch(() => undefined);
  }
}
