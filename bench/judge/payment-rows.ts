import pg from 'pg';
import { checkInvariant } from '../../src/invariants/check-invariants.js';
import { INVARIANTS } from '../../src/invariants/invariants.js';
import { Database } from '../../src/persistence/database.js';

/** One query of a large run may take so long (ms). */
const QUERY_WITHIN_MS = 60_000;
const FINAL_STATES = ['succeeded', 'failed', 'cancelled', 'expired', 'returned'];

/** Settings that decide what a commit costs. */
const DURABILITY = ['fsync', 'synchronous_commit', 'full_page_writes'] as const;
const SHOWN = [...DURABILITY, 'wal_sync_method', 'shared_buffers', 'max_wal_size', 'checkpoint_timeout'];

export interface PostgresFacts {
  readonly version: string;
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Reads a server's version and settings over a connection of its own.
 * @throws Error when a commit on it would not be durable: figures from there mean nothing.
 */
export async function readPostgresFacts(url: string): Promise<PostgresFacts> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string; value: string }>(
      'SELECT name, current_setting(name) AS value FROM pg_settings WHERE name = ANY($1)',
      [[...SHOWN, 'server_version']],
    );
    const values = Object.fromEntries(rows.map((row) => [row.name, row.value]));
    for (const name of DURABILITY) {
      if (values[name] !== 'on') throw new Error(`${name} of Postgres is ${values[name]}, not on.`);
    }
    const settings = Object.fromEntries(SHOWN.map((name) => [name, values[name] ?? '?']));
    return { version: values['server_version'] ?? '?', settings };
  } finally {
    await client.end();
  }
}

/** What Postgres says of the payments of one stack. Read only, but for the rate and the breaker of a lane. */
export class PaymentRows {
  readonly #pool: pg.Pool;

  constructor(private readonly url: string) {
    this.#pool = new pg.Pool({ connectionString: url, max: 2, query_timeout: QUERY_WITHIN_MS });
    // A connection that a restart of the server ends must not end the bench.
    this.#pool.on('error', () => undefined);
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async finalCount(): Promise<number> {
    return this.#count('SELECT count(*) FROM payment WHERE state = ANY($1)', [FINAL_STATES]);
  }

  /** Payments that stand in this state now. */
  async inState(state: string): Promise<number> {
    return this.#count('SELECT count(*) FROM payment WHERE state = $1', [state]);
  }

  /** Lets calls go on however many of them end without an answer. */
  async disableBreakers(): Promise<void> {
    await this.#pool.query('UPDATE lane SET breaker_enabled = false');
  }

  /** A lane that no worker pays through, for payments that were written and not executed. */
  async addLane(lane: string, provider: string): Promise<void> {
    await this.#pool.query(
      `INSERT INTO lane (lane, provider, account, rate, burst, tokens, cap) VALUES ($1, $2, 'bench', 1, 1, 1, 1)
        ON CONFLICT DO NOTHING`,
      [lane, provider],
    );
  }

  /** Attempts that ended with this class. */
  async attemptsOf(resultClass: string): Promise<number> {
    return this.#count('SELECT count(*) FROM submission_attempt WHERE result_class = $1', [resultClass]);
  }

  async outboxCount(): Promise<number> {
    return this.#count('SELECT count(*) FROM outbox', []);
  }

  async paymentCount(): Promise<number> {
    return this.#count('SELECT count(*) FROM payment', []);
  }

  /** Newest transition into a final state, epoch ms on the database's clock; null: none yet. */
  async lastFinalAt(ids: readonly string[]): Promise<number | null> {
    const { rows } = await this.#pool.query<{ at: string | null }>(
      `SELECT extract(epoch FROM max(at)) * 1000 AS at FROM payment_transition
        WHERE payment_id = ANY($1) AND to_state = ANY($2)`,
      [ids, FINAL_STATES],
    );
    return rows[0]?.at == null ? null : Number(rows[0].at);
  }

  /** How many of the payments were ever in a state. */
  async everIn(state: string, ids: readonly string[]): Promise<number> {
    return this.#count(
      'SELECT count(DISTINCT payment_id) FROM payment_transition WHERE to_state = $1 AND payment_id = ANY($2)',
      [state, ids],
    );
  }

  /** Gives every lane this rate (payments per second) and burst, with no token saved up. */
  async setLaneRate(rate: number, burst: number): Promise<void> {
    await this.#pool.query(
      'UPDATE lane SET rate = $1, burst = $2, tokens = 0, refilled_at = clock_timestamp()',
      [rate, burst],
    );
  }

  /**
   * What is wrong with the histories of the payments: a sentence for each kind of fault, with how
   * many payments have it; empty when every history is whole and ends in the expected state.
   */
  async brokenHistories(ids: readonly string[], endState: string): Promise<readonly string[]> {
    const { rows } = await this.#pool.query<{ fault: string; count: string }>(
      `WITH wanted AS (SELECT unnest($1::text[]) AS id),
            step AS (
              SELECT payment_id AS id, seq, from_state, to_state,
                     lag(to_state) OVER (PARTITION BY payment_id ORDER BY seq) AS before,
                     row_number() OVER (PARTITION BY payment_id ORDER BY seq) AS nth
                FROM payment_transition WHERE payment_id = ANY($1)),
            whole AS (
              SELECT w.id, p.state, p.version, count(s.seq) AS steps,
                     bool_or(s.seq <> s.nth OR s.from_state IS DISTINCT FROM s.before) AS gap,
                     (array_agg(s.to_state ORDER BY s.seq DESC))[1] AS last,
                     count(*) FILTER (WHERE s.from_state = 'scheduled' AND s.to_state = 'submitting') AS starts
                FROM wanted w LEFT JOIN payment p ON p.id = w.id LEFT JOIN step s ON s.id = w.id
               GROUP BY w.id, p.state, p.version)
       SELECT fault, count(*) FROM (
         SELECT 'have no row' AS fault FROM whole WHERE state IS NULL
         UNION ALL SELECT 'ended as ' || state FROM whole WHERE state <> $2
         UNION ALL SELECT 'miss a transition' FROM whole WHERE gap OR steps <> version OR last <> state
         UNION ALL SELECT 'started submission ' || starts || ' times' FROM whole
                    WHERE state IS NOT NULL AND starts <> (CASE $2 WHEN 'scheduled' THEN 0 ELSE 1 END)
       ) faults GROUP BY fault ORDER BY fault`,
      [ids, endState],
    );
    return rows.map((row) => `${row.count} payments ${row.fault}`);
  }

  /** The product's own invariants over all payments: a sentence for each that is broken or unchecked. */
  async brokenInvariants(): Promise<readonly string[]> {
    const database = new Database({
      url: this.url,
      poolSize: 1,
      applicationName: 'payments-bench',
      queryMs: QUERY_WITHIN_MS + 5_000,
    });
    const broken: string[] = [];
    try {
      for (const invariant of INVARIANTS) {
        const result = await checkInvariant(database, invariant, { since: null, limitMs: QUERY_WITHIN_MS });
        const name = `invariant ${invariant.id} (${invariant.title})`;
        if (result.kind === 'unchecked') broken.push(`${name} could not be checked: ${result.code}`);
        else if (result.count > 0) broken.push(`${name} is broken by ${result.count}`);
      }
    } finally {
      await database.close();
    }
    return broken;
  }

  async #count(text: string, values: readonly unknown[]): Promise<number> {
    const { rows } = await this.#pool.query<{ count: string }>(text, [...values]);
    return Number(rows[0]?.count);
  }
}
