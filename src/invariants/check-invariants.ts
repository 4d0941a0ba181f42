import type { Database, Statement } from '../persistence/database.js';
import { checkText, type Invariant, type Scope } from './invariant.js';

export type InvariantResult =
  | {
      readonly kind: 'checked';
      readonly id: number;
      readonly title: string;
      readonly scope: Scope;
      /** Payments (outbox rows by their payment) that break it. */
      readonly count: number;
      /** At most 100 of them, sorted. */
      readonly ids: readonly string[];
    }
  /** Not known: the query took too long, or Postgres refused it or did not answer. */
  | {
      readonly kind: 'unchecked';
      readonly id: number;
      readonly title: string;
      readonly code: 'timeout' | 'failed';
      /** The fault, for the log; never shown. */
      readonly cause: unknown;
    };

const LIMIT: Statement = {
  name: 'invariant-limit',
  text: `SELECT set_config('statement_timeout', $1, true), set_config('transaction_read_only', 'on', true)`,
};
const QUERY_CANCELED = '57014';

export interface CheckOptions {
  /** Postgres timestamptz text: look only at payments with a transition since then. Null: at all. */
  readonly since: string | null;
  /** Longest time of the query in ms; a longer one is `unchecked`. */
  readonly limitMs: number;
}

/**
 * Runs one invariant in a read-only transaction of its own and one snapshot, so that a payment in
 * motion is never half seen. Throws nothing. Twice: the answer of then and of now.
 */
export async function checkInvariant(
  database: Database,
  invariant: Invariant,
  options: CheckOptions,
): Promise<InvariantResult> {
  const { id, title } = invariant;
  const scope: Scope = options.since !== null && invariant.scoped ? 'recent' : 'full';
  const statement = { name: `invariant-${id}-${scope}`, text: checkText(invariant, scope) };
  try {
    const { rows } = await database.transaction(async (tx) => {
      await tx.query(LIMIT, [String(Math.ceil(options.limitMs))]);
      return tx.query<{ count: number; ids: string[] }>(statement, scope === 'recent' ? [options.since] : []);
    });
    const row = rows[0];
    if (row === undefined) throw new Error('an invariant answered no row');
    return { kind: 'checked', id, title, scope, count: row.count, ids: row.ids };
  } catch (error) {
    // The storage layer says that the statement was undone; the cause says why.
    const { cause } = error as { cause?: { code?: unknown } };
    const canceled = cause?.code === QUERY_CANCELED;
    return { kind: 'unchecked', id, title, code: canceled ? 'timeout' : 'failed', cause: error };
  }
}
