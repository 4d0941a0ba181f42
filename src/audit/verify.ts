import { literal, withRawRows, type RawRows } from '../persistence/copy-out.js';
import type { Broken } from './anchor-check.js';
import type { AnchorPublicKeys } from './anchor-keys.js';
import { ChainCheck } from './chain-check.js';
import { verifyAnchors } from './verify-anchors.js';
import { verifyCopies } from './verify-copies.js';

/** What is looked at; both null: everything. */
export interface VerifyScope {
  /** ISO 8601: payments that changed, and anchors that were made, since then. */
  readonly since: string | null;
  readonly paymentId: string | null;
}

export interface VerifyOptions extends VerifyScope {
  /** A role that sees every row: `payments_auditor`. */
  readonly url: string;
  readonly applicationName: string;
  readonly publicKeys: AnchorPublicKeys;
  /** Folder of the copies; null: they are not looked at. */
  readonly copies: string | null;
  /** Transitions so far, and about how many there are. */
  readonly progress?: (done: number, total: number | null) => void;
}

export interface VerifyReport {
  readonly transitions: number;
  readonly payments: number;
  readonly anchors: number;
  readonly copiedAnchors: number;
  /** The database's clock; null: there is none. */
  readonly newestAnchorAt: string | null;
  /** How many faults were found, the first for each payment and anchor. */
  readonly brokenCount: number;
  /** The first of them, at most `MOST_SHOWN`. */
  readonly broken: readonly Broken[];
}

export const MOST_SHOWN = 100;
const PROGRESS_EVERY = 25_000;

/**
 * Recomputes every chain and every anchor, in one snapshot and in memory that does not grow with the
 * rows. It trusts no function, view or plan of the database: only bytes of tables are read, and the
 * anchors' signatures and copies tell whether these are the bytes that were.
 * @throws StorageUnavailable when Postgres cannot be reached; Error with a sentence when this role
 * cannot see every row, or something in the way of a table is not one; the system's error when the
 * folder of the copies cannot be read.
 */
export async function verifyHistory(options: VerifyOptions): Promise<VerifyReport> {
  const broken: Broken[] = [];
  let brokenCount = 0;
  const found = (one: Broken): void => {
    if (brokenCount++ < MOST_SHOWN) broken.push(one);
  };
  return withRawRows(options, async (rows) => {
    await refuseBlindness(rows);
    const newest = await readNewest(rows);
    const chains = new ChainCheck(found, newest.cut);
    await readChains(rows, options, chains);
    const { anchors, firstNo } = await verifyAnchors(rows, { ...options, found });
    const copiedAnchors =
      options.copies === null
        ? 0
        : await verifyCopies(rows, {
            ...options,
            folder: options.copies,
            firstNo,
            found,
            later: (work) => withRawRows(options, work),
          });
    const { transitions, payments } = chains;
    return { transitions, payments, anchors, copiedAnchors, newestAnchorAt: newest.at, brokenCount, broken };
  });
}

/** Checks of nothing would all pass: a role without a policy sees no rows. */
async function refuseBlindness(rows: RawRows): Promise<void> {
  const tables = [
    'payment',
    'payment_transition',
    'audit_anchor',
    'audit_anchor_signature',
    'audit_anchor_leaf',
  ];
  const names = tables.map((table) => `'${table}'`).join(', ');
  const found = await rows.select(
    `SELECT c.relname, c.relkind::text, (NOT row_security_active(c.oid) OR EXISTS (
         SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd IN ('*', 'r')
            AND pg_get_expr(p.polqual, p.polrelid) = 'true' AND EXISTS (
              SELECT FROM unnest(p.polroles) role WHERE role = 0 OR pg_has_role(role, 'USAGE'))))::text AS sees_all
       FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relname IN (${names})`,
  );
  for (const table of tables) {
    const row = found.find((each) => each['relname'] === table);
    if (row?.['relkind'] !== 'r') throw new Error(`The schema has no table ${table}: is it migrated?`);
    if (row['sees_all'] !== 'true') {
      throw new Error(`This role does not see every row of ${table}. Use payments_auditor.`);
    }
  }
}

async function readNewest(rows: RawRows): Promise<{ readonly cut: number; readonly at: string | null }> {
  const [row] = await rows.select(
    `SELECT cut::text, at::text FROM public.audit_anchor ORDER BY no DESC LIMIT 1`,
  );
  return { cut: Number(row?.['cut'] ?? 0), at: row?.['at'] ?? null };
}

async function readChains(rows: RawRows, options: VerifyOptions, chains: ChainCheck): Promise<void> {
  const isWhole = options.since === null && options.paymentId === null;
  const total = isWhole && options.progress ? await estimate(rows) : null;
  let next = PROGRESS_EVERY;
  await rows.copy(chainQuery(options), (row) => {
    chains.row(row);
    if (chains.transitions < next) return;
    next += PROGRESS_EVERY;
    options.progress?.(chains.transitions, total);
  });
  chains.end();
  options.progress?.(chains.transitions, total);
}

async function estimate(rows: RawRows): Promise<number | null> {
  const [row] = await rows.select(
    `SELECT reltuples::bigint::text AS rows FROM pg_class WHERE oid = 'public.payment_transition'::regclass`,
  );
  const count = Number(row?.['rows'] ?? -1);
  return count > 0 ? count : null;
}

/**
 * Transitions, head rows and leaves, merged by payment and version. Each branch comes in order from an
 * index (payment_transition_pkey, payment_pkey, audit_anchor_leaf_once), so that Postgres sorts nothing
 * and keeps nothing; the inner order by version is for the planner: there is one row per payment.
 */
function chainQuery(scope: VerifyScope): string {
  const within = (column: string): string => withinScope(scope, column);
  const nulls = (...types: readonly string[]): string => types.map((type) => `NULL::${type}`).join(', ');
  return `SELECT 1::smallint, payment_id, seq, tenant_id, from_state, to_state, cause, actor, at, detail, hash, xact
      FROM public.payment_transition WHERE ${within('payment_id')}
  UNION ALL SELECT 2::smallint, h.id, h.version, ${nulls('text', 'text')}, h.state,
      ${nulls('text', 'text', 'timestamptz', 'text', 'bytea', 'bigint')}
      FROM (SELECT id, version, state FROM public.payment WHERE ${within('id')} ORDER BY id, version OFFSET 0) h
  UNION ALL SELECT 3::smallint, payment_id, version, ${nulls('text', 'text', 'text', 'text', 'text', 'timestamptz', 'text')},
      hash, anchor_no FROM public.audit_anchor_leaf WHERE ${within('payment_id')}
  ORDER BY 2, 3`;
}

function withinScope({ since, paymentId }: VerifyScope, column: string): string {
  const parts = [
    ...(paymentId === null ? [] : [`${column} = ${literal(paymentId)}`]),
    ...(since === null
      ? []
      : [
          `${column} IN (SELECT t.payment_id FROM public.payment_transition t WHERE t.at >= ${literal(since)}::timestamptz
            UNION SELECT l.payment_id FROM public.audit_anchor_leaf l
              JOIN public.audit_anchor a ON a.no = l.anchor_no WHERE a.at >= ${literal(since)}::timestamptz)`,
        ]),
  ];
  return parts.length === 0 ? 'true' : parts.join(' AND ');
}
