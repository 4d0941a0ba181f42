import pg from 'pg';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from './database-errors.js';

/** One SQL text with a name: Postgres plans it once per connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export interface Rows<R> {
  readonly rows: R[];
  readonly rowCount: number;
}

/** Something that runs statements: the pool (each its own commit) or one open transaction. */
export interface Sql {
  query<R = Record<string, unknown>>(statement: Statement, values?: readonly unknown[]): Promise<Rows<R>>;
}

/** Each inner limit is smaller than the outer one, so the innermost speaks first (milliseconds). */
export const DATABASE_LIMITS = Object.freeze({
  connectMs: 2_000,
  queryMs: 6_000,
  statementMs: 5_000,
  lockMs: 2_000,
  idleInTransactionMs: 3_000,
});

const SESSION = [
  `-c statement_timeout=${DATABASE_LIMITS.statementMs}`,
  `-c lock_timeout=${DATABASE_LIMITS.lockMs}`,
  `-c idle_in_transaction_session_timeout=${DATABASE_LIMITS.idleInTransactionMs}`,
  // Half-open sockets: the server notices a client that went away, and the reverse below.
  '-c client_connection_check_interval=2000',
  '-c tcp_user_timeout=10000',
  '-c TimeZone=UTC',
  '-c DateStyle=ISO',
].join(' ');

/**
 * Statements name the index they rely on. Plans are kept per connection, and one that was made while
 * a table was small would read all of it long after it grew; checks of whole tables are free to.
 */
const BY_INDEX = '-c enable_seqscan=off';

const INT8 = 20;
const TIMESTAMPTZ = 1184;
/** bigint arrives as BigInt and time as Postgres writes it: neither passes through a float or a Date. */
const types = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
    if (oid === INT8) return (text: string) => BigInt(text);
    if (oid === TIMESTAMPTZ) return (text: string) => text;
    return pg.types.getTypeParser(oid, format as 'text') as (text: string) => unknown;
  }) as typeof pg.types.getTypeParser,
};

/** SQLSTATE classes in which the connection or the server is gone or shutting down. */
const CONNECTION_STATES = /^(08|57P0|53|25P03)/;
const LOCK_NOT_AVAILABLE = '55P03';
/** The statement's own time limit: it was rolled back, nothing of it stands. */
const QUERY_CANCELED = '57014';

function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
}

/** True when the statement may or may not have run: the answer was lost on the way. */
function isConnectionFault(error: unknown): boolean {
  const code = sqlState(error);
  if (code !== null && CONNECTION_STATES.test(code)) return true;
  if (code !== null && /^E[A-Z]+$/.test(code)) return true;
  const message = error instanceof Error ? error.message : '';
  return /Connection terminated|Query read timeout|connection timeout|timeout expired|Client has encountered/i.test(
    message,
  );
}

/**
 * The one way to Postgres. Owns the pool; translates faults once: StorageUnavailable (nothing
 * ran), OutcomeUnknown (a write whose answer was lost), LockTimeout (somebody holds the row).
 * Every other error of Postgres passes through as it is.
 */
export class Database implements Sql {
  private readonly pool: pg.Pool;

  /**
   * @param options.queryMs how long the driver waits for an answer; only checks that raise the
   * server's own limit for their transaction need more than the default.
   */
  constructor(options: { url: string; poolSize: number; applicationName: string; queryMs?: number }) {
    this.pool = new pg.Pool({
      connectionString: options.url,
      max: options.poolSize,
      application_name: options.applicationName,
      connectionTimeoutMillis: DATABASE_LIMITS.connectMs,
      query_timeout: options.queryMs ?? DATABASE_LIMITS.queryMs,
      keepAlive: true,
      options: options.queryMs === undefined ? `${SESSION} ${BY_INDEX}` : SESSION,
      types,
    });
    // An idle connection that the server closed is replaced on the next use.
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Runs one statement in a commit of its own. Twice: whatever the statement does twice. */
  async query<R>(statement: Statement, values: readonly unknown[] = []): Promise<Rows<R>> {
    return this.withClient((client) => run<R>(client, statement, values));
  }

  /**
   * Runs `work` in one transaction (READ COMMITTED) on one connection; `work` must use only the
   * `Sql` it is given. Throws what `work` throws, after a rollback. A lost answer of COMMIT is
   * OutcomeUnknown: read again by id.
   */
  async transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
    return this.withClient(async (client) => {
      await run(client, BEGIN, []);
      let result: T;
      try {
        result = await work({ query: (statement, values = []) => run(client, statement, values) });
      } catch (error) {
        await run(client, ROLLBACK, []).catch(() => undefined);
        throw error;
      }
      await run(client, COMMIT, []);
      return result;
    });
  }

  /** Connections in use, idle and waiting callers, for the metrics. */
  connections(): { readonly total: number; readonly idle: number; readonly waiting: number } {
    return { total: this.pool.totalCount, idle: this.pool.idleCount, waiting: this.pool.waitingCount };
  }

  /** Ends every connection. Twice: nothing. */
  async close(): Promise<void> {
    if (!this.pool.ended) await this.pool.end();
  }

  private async withClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let client: pg.PoolClient;
    try {
      client = await this.pool.connect();
    } catch (error) {
      throw new StorageUnavailable('Postgres cannot be reached', { cause: error });
    }
    let broken: Error | undefined;
    try {
      return await work(client);
    } catch (error) {
      // A connection that timed out may still get the old answer: it must not go back to the pool.
      if (error instanceof OutcomeUnknown || error instanceof StorageUnavailable) broken = error;
      throw error;
    } finally {
      client.release(broken);
    }
  }
}

const BEGIN: Statement = { name: 'begin', text: 'BEGIN' };
const COMMIT: Statement = { name: 'commit', text: 'COMMIT' };
const ROLLBACK: Statement = { name: 'rollback', text: 'ROLLBACK' };

async function run<R>(
  client: pg.PoolClient,
  statement: Statement,
  values: readonly unknown[],
): Promise<Rows<R>> {
  try {
    const result = await client.query({ name: statement.name, text: statement.text, values: [...values] });
    return { rows: result.rows as R[], rowCount: result.rowCount ?? 0 };
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) {
      throw new LockTimeout(`statement ${statement.name} waited too long for a lock`, { cause: error });
    }
    if (sqlState(error) === QUERY_CANCELED) {
      throw new StorageUnavailable(`statement ${statement.name} took too long and was undone`, {
        cause: error,
      });
    }
    if (isConnectionFault(error)) {
      throw new OutcomeUnknown(`the answer to statement ${statement.name} was lost`, { cause: error });
    }
    throw error;
  }
}
