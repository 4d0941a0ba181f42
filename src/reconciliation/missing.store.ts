import type { Database, Statement } from '../persistence/database.js';

/** How long the look at all payments may take (ms): it reads every succeeded payment of the provider once. */
const LIMIT_MS = 120_000;
/** Found at once; more are found by the next round. */
const MOST_AT_ONCE = 1_000;

const LIMIT: Statement = {
  name: 'settlement-missing-limit',
  text: `SELECT set_config('statement_timeout', $1, true)`,
};

/**
 * Succeeded payments that were started after the provider's reports begin and whose booking lag was
 * over before they end, without any line. The end of a report is its last booking, never later than
 * now, so that a wrong date in a row cannot make every payment missing.
 */
const FIND: Statement = {
  name: 'settlement-find-missing',
  text: `WITH told AS (
  SELECT min(f.first_booked_at) AS since, least(max(f.last_booked_at), clock_timestamp()) AS cut_off
    FROM settlement_file f WHERE f.provider = $1 AND f.finished_at IS NOT NULL),
lost AS (
  SELECT p.id, p.tenant_id FROM payment p, told
   WHERE p.provider = $1 AND p.state = 'succeeded' AND p.submission_started_at >= told.since
     AND p.submission_started_at < told.cut_off - $3::double precision * interval '1 ms'
     AND NOT EXISTS (SELECT 1 FROM settlement_row r WHERE r.payment_id = p.id AND r.kind = 'payment')
     AND NOT EXISTS (SELECT 1 FROM settlement_missing m WHERE m.payment_id = p.id)
   ORDER BY p.id LIMIT ${MOST_AT_ONCE}),
noted AS (
  INSERT INTO settlement_missing (payment_id, provider, file_id) SELECT id, $1::text, $2::bigint FROM lost
  ON CONFLICT ON CONSTRAINT settlement_missing_pkey DO NOTHING RETURNING payment_id),
filed AS (
  INSERT INTO evidence (payment_id, tenant_id, source, kind)
  SELECT l.id, l.tenant_id, 'settlement', 'missing_at_provider' FROM lost l JOIN noted n ON n.payment_id = l.id),
opened AS (
  INSERT INTO review_case (payment_id, tenant_id, reason, due_at)
  SELECT l.id, l.tenant_id, 'missing_at_provider', clock_timestamp() + interval '4 hours'
    FROM lost l JOIN noted n ON n.payment_id = l.id
  ON CONFLICT DO NOTHING),
counted AS (
  INSERT INTO settlement_count AS c (provider, bucket, rows)
  SELECT $1::text, 'missing_at_provider', count(*) FROM noted HAVING count(*) > 0
  ON CONFLICT ON CONSTRAINT settlement_count_pkey DO UPDATE SET rows = c.rows + excluded.rows)
SELECT payment_id AS id FROM noted`,
};

/**
 * Reports succeeded payments that no settlement line told of within the booking lag: evidence and a
 * case each, once; their state stays. At most 1,000 a call.
 * @param fileId the finished file whose cut-off shows them.
 * @returns the ids found now. Twice: the second finds the next ones, at the end nothing.
 * @throws StorageUnavailable also when the look takes too long: nothing of it stands.
 */
export async function reportMissing(
  database: Database,
  file: { readonly id: bigint; readonly provider: string },
  lagMs: number,
): Promise<readonly string[]> {
  return database.transaction(async (tx) => {
    await tx.query(LIMIT, [String(LIMIT_MS)]);
    const { rows } = await tx.query<{ id: string }>(FIND, [file.provider, file.id, lagMs]);
    return rows.map((row) => row.id);
  });
}

/** The driver must wait longer than the server, so that the server's word is heard (ms). */
export const MISSING_QUERY_MS = LIMIT_MS + 5_000;
/** A full portion: there may be more. */
export const MISSING_AT_ONCE = MOST_AT_ONCE;
