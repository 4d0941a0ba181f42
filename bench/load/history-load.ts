import pg from 'pg';

/** Payments of one statement: short enough for the server's memory. */
const AT_ONCE = 25_000;

/** What a usual payment goes through: from, to, cause, actor, detail. */
const STEPS = [
  [null, 'scheduled', 'create', 'api_key:bench', '{}'],
  ['scheduled', 'submitting', 'begin-submission', 'worker:0192f0c4-7f9e-7cc1-9f0e-0123456789ab', '{"generation":1,"attempt":1}'],
  ['submitting', 'submitted', 'record-outcome', 'worker:0192f0c4-7f9e-7cc1-9f0e-0123456789ab', '{"generation":1,"attempt":1,"evidence":"accepted"}'],
  ['submitted', 'succeeded', 'record-outcome', 'provider:simulated', '{"generation":1,"source":"lookup"}'],
] as const; // prettier-ignore
export const TRANSITIONS_EACH = STEPS.length;

const ID = `'pay_' || translate(md5('history-' || n), '0189', 'ghij')`;
const TABLES = ['payment', 'payment_transition'];

/**
 * Histories with right hash chains straight into the tables, set by set: living them would take hours.
 * Their rows lie in the order of time, as real ones do: those of one payment are far apart.
 */
export async function writeHistories(url: string, payments: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const always = await client.query<{ text: string }>(
      `SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname) AS text FROM pg_trigger
        WHERE NOT tgisinternal AND tgenabled = 'A' AND tgrelid::regclass::text = ANY ($1)`,
      [TABLES],
    );
    for (const table of TABLES) await client.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
    for (let from = 1; from <= payments; from += AT_ONCE) {
      await client.query(PAYMENTS, [from, Math.min(payments, from + AT_ONCE - 1)]);
    }
    for (const seq of STEPS.keys()) {
      for (let from = 1; from <= payments; from += AT_ONCE) {
        await client.query(transitions(seq), [from, Math.min(payments, from + AT_ONCE - 1)]);
      }
    }
    for (const table of TABLES) await client.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
    for (const { text } of always.rows) await client.query(text);
    for (const table of TABLES) await client.query(`VACUUM ANALYZE ${table}`);
  } finally {
    await client.end();
  }
}

/** Whether the newest anchor reaches past every transition. */
export async function isAnchored(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ whole: boolean | null }>(
      `SELECT (SELECT max(cut) FROM audit_anchor) > (SELECT max(xact) FROM payment_transition) AS whole`,
    );
    return rows[0]?.whole === true;
  } finally {
    await client.end();
  }
}

const PAYMENTS = `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
    destination, destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after, state,
    version, submission_started_at, created_by)
  SELECT ${ID}, 'bench', 'history-' || n, '\\x00', 1, 1999, 'EUR', '\\x00', 'k', '\\x00', 'k', 'history', 'history/bench',
    clock_timestamp() - interval '1 hour', clock_timestamp() + interval '1 day', 'succeeded', ${STEPS.length},
    clock_timestamp(), 'bench'
  FROM generate_series($1::integer, $2::integer) n`;

function transitions(index: number): string {
  const step = STEPS[index];
  if (!step) throw new Error('there is no such step');
  const [from, to, cause, actor, detail] = step;
  const seq = index + 1;
  const text = (value: string | null): string => (value === null ? 'NULL' : pg.escapeLiteral(value));
  return `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, at, detail, xact, hash)
    SELECT r.id, ${seq}, 'bench', ${text(from)}, ${text(to)}, ${text(cause)}, ${text(actor)}, r.at, ${text(detail)},
      pg_current_xact_id()::text::bigint, sha256(coalesce(b.hash, '') || convert_to(concat_ws(E'\\n', 'transition/v1', r.id,
        ${seq}, 'bench', ${text(from ?? 'none')}, ${text(to)}, ${text(cause)}, ${text(actor)},
        to_char(r.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ${text(detail)}), 'UTF8'))
    FROM (SELECT ${ID} AS id, clock_timestamp() AS at FROM generate_series($1::integer, $2::integer) n OFFSET 0) r
    LEFT JOIN payment_transition b ON b.payment_id = r.id AND b.seq = ${index}`;
}
