import pg from 'pg';
import { StorageUnavailable } from './database-errors.js';
import { isPrepared, runPipelined } from './pipelined-query.js';
import { statementFault } from './postgres-faults.js';
import { TENANT_SETTING } from './roles.js';

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

/** Statements, and several of them as one transaction. */
export interface Transactions extends Sql {
  /** See `Database.transaction`. */
  transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T>;
}

/** The database as one that serves clients sees it: for everything of a tenant, as that tenant. */
export interface TenantDatabase {
  /** See `Database.ofTenant`. */
  ofTenant(tenantId: string): Transactions;
}

/** Decides who takes a connection of a pool next, before the pool is asked. */
export interface ConnectionTurns {
  /** @returns what has to be called once, when the connection is back. Throws when no turn came. */
  enter(): (() => void) | Promise<() => void>;
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
  // A client whose machine is gone would keep its slot for the two hours of the system's default.
  '-c tcp_keepalives_idle=30',
  '-c tcp_keepalives_interval=5',
  '-c tcp_keepalives_count=3',
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

/**
 * The one way to Postgres. Owns the pool; translates faults once: StorageUnavailable (nothing
 * ran), OutcomeUnknown (a write whose answer was lost), LockTimeout (somebody holds the row).
 * Every other error of Postgres passes through as it is.
 */
export class Database implements Transactions, TenantDatabase {
  private readonly pool: pg.Pool;
  /** Goes up when all connections became suspect; those of an earlier generation are not used again. */
  private generation = 0;
  private readonly generationOf = new WeakMap<pg.PoolClient, number>();
  private turns: ConnectionTurns | null = null;

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
    this.pool.on('connect', (client) => {
      client.on('error', () => undefined);
      this.generationOf.set(client, this.generation);
    });
  }

  /** Runs one statement in a commit of its own. Twice: whatever the statement does twice. */
  async query<R>(statement: Statement, values: readonly unknown[] = []): Promise<Rows<R>> {
    return this.withConnection((connection) => run<R>(connection, statement, values));
  }

  /**
   * Runs `work` in one transaction (READ COMMITTED) on one connection; `work` must use only the
   * `Sql` it is given. Throws what `work` throws, after a rollback. A lost answer of COMMIT is
   * OutcomeUnknown: read again by id.
   * @throws Error when `work` swallowed the error of a statement: Postgres then undid everything.
   */
  async transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
    return this.inTransaction((connection) => run(connection, BEGIN, []), work);
  }

  /**
   * The same for one tenant: each statement, and each transaction, runs with the tenant set for as long as
   * it lasts and no longer, so that the connection goes back without one. Row-level security then
   * shows a session of `payments_api` the rows of this tenant and no others. The setting goes out with
   * the first statement: no round trip more.
   * @throws Error when the tenant is empty: that would be no tenant.
   */
  ofTenant(tenantId: string): Transactions {
    if (tenantId === '') throw new Error('A tenant has an id.');
    return {
      query: (statement, values = []) =>
        this.withConnection((connection) => runAs(connection, tenantId, statement, values)),
      // BEGIN goes on with the transaction that the setting began.
      transaction: (work) => this.inTransaction((connection) => runAs(connection, tenantId, BEGIN, []), work),
    };
  }

  private async inTransaction<T>(
    begin: (connection: Connection) => Promise<unknown>,
    work: (tx: Sql) => Promise<T>,
  ): Promise<T> {
    return this.withConnection(async (connection) => {
      await begin(connection);
      let result: T;
      try {
        result = await work({ query: (statement, values = []) => run(connection, statement, values) });
      } catch (error) {
        // Without an answer from a spent connection it would only wait for its time-out again.
        if (connection.spentBy === null) await rollBack(connection);
        throw error;
      }
      const { command } = await run(connection, COMMIT, []);
      if (command !== 'COMMIT') {
        throw new Error('a statement of this transaction had failed, so that COMMIT undid all of it');
      }
      return result;
    });
  }

  /** From now on every connection of this pool is taken in the order of `turns`. */
  useGate(turns: ConnectionTurns): void {
    this.turns = turns;
  }

  /** Connections in use, idle and waiting callers, for the metrics. */
  connections(): { readonly total: number; readonly idle: number; readonly waiting: number } {
    return { total: this.pool.totalCount, idle: this.pool.idleCount, waiting: this.pool.waitingCount };
  }

  /** Ends every connection. Twice: nothing. */
  async close(): Promise<void> {
    if (!this.pool.ended) await this.pool.end();
  }

  private async withConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    if (this.turns === null) return this.onConnection(work);
    const leave = await this.turns.enter();
    try {
      return await this.onConnection(work);
    } finally {
      leave();
    }
  }

  private async onConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection: Connection = {
      client: await this.checkOut(),
      spentBy: null,
      suspectAll: () => void this.generation++,
    };
    try {
      return await work(connection);
    } finally {
      // A connection that timed out may still get the old answer: it must not go back to the pool.
      connection.client.release(connection.spentBy ?? undefined);
    }
  }

  private async checkOut(): Promise<pg.PoolClient> {
    try {
      let client = await this.pool.connect();
      // The pool hands out idle connections at once: each that is retired makes room for a new one.
      for (let i = 0; i < this.pool.options.max && this.isSuspect(client); i++) {
        client.release(true);
        client = await this.pool.connect();
      }
      return client;
    } catch (error) {
      throw new StorageUnavailable('Postgres cannot be reached', { cause: error });
    }
  }

  private isSuspect(client: pg.PoolClient): boolean {
    return this.generationOf.get(client) !== this.generation;
  }
}

/** One connection while it is checked out. */
interface Connection {
  readonly client: pg.PoolClient;
  /** The error after which it must not be used again. */
  spentBy: Error | null;
  readonly suspectAll: () => void;
}

const BEGIN: Statement = { name: 'begin', text: 'BEGIN' };
const COMMIT: Statement = { name: 'commit', text: 'COMMIT' };
const ROLLBACK: Statement = { name: 'rollback', text: 'ROLLBACK' };

/** A connection that cannot even roll back is in a state that nobody knows. */
async function rollBack(connection: Connection): Promise<void> {
  try {
    await run(connection, ROLLBACK, []);
  } catch (error) {
    connection.spentBy = error as Error;
  }
}

const SET_TENANT: Statement = {
  name: 'set-tenant',
  text: `SELECT set_config('${TENANT_SETTING}', $1, true)`,
};

/** Runs a statement behind the setting of its tenant, which ends with the transaction. */
async function runAs<R>(
  connection: Connection,
  tenantId: string,
  statement: Statement,
  values: readonly unknown[],
): Promise<Answer<R>> {
  // By itself it sets nothing: its transaction ends with it.
  if (!isPrepared(connection.client, SET_TENANT.name)) await run(connection, SET_TENANT, [tenantId]);
  const ahead = { name: SET_TENANT.name, values: [tenantId] };
  return answerOf<R>(connection, statement, (query) =>
    runPipelined(connection.client, ahead, { ...query, values }),
  );
}

async function run<R>(
  connection: Connection,
  statement: Statement,
  values: readonly unknown[],
): Promise<Answer<R>> {
  return answerOf<R>(connection, statement, (query) =>
    connection.client.query({ ...query, values: [...values] }),
  );
}

interface Answer<R> extends Rows<R> {
  readonly command: string;
}

async function answerOf<R>(
  connection: Connection,
  statement: Statement,
  send: (statement: Statement) => Promise<pg.QueryResult>,
): Promise<Answer<R>> {
  try {
    const result = await send(statement);
    return { rows: result.rows as R[], rowCount: result.rowCount ?? 0, command: result.command };
  } catch (error) {
    const fault = statementFault(error, statement.name);
    if (fault.isSpent) connection.spentBy = fault.thrown as Error;
    if (fault.suspectsAll) connection.suspectAll();
    throw fault.thrown;
  }
}
