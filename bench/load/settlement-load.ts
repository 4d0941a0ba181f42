import { hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import pg from 'pg';

/** Payments of one statement: short enough for the server's memory. */
const AT_ONCE = 50_000;
const LINES_AT_ONCE = 5_000;
const DAY_MS = 86_400_000;
/** So long ago that every booking lag is over. */
const STARTED_MS = 20 * DAY_MS;
/** One payment in so many is open, so that its line settles it. */
const OPEN_EVERY = 1_000;

export interface SettledPayments {
  readonly provider: string;
  readonly lane: string;
  readonly count: number;
  /** How many of them wait for their line. */
  readonly open: number;
}

const amountOf = (n: number): number => 1_000 + (n % 100_000);
/** As Postgres makes it below: letters of our ids only. */
const idOf = (n: number): string =>
  `pay_${hash('md5', `settled-${n}`).replaceAll(/[0189]/g, (digit) => ({ 0: 'g', 1: 'h', 8: 'i', 9: 'j' })[digit] ?? '')}`;

/**
 * Payments that were executed three weeks ago, straight into the tables: a million lives would take
 * longer than the measurement. Their histories are one row; nothing of them is judged but their lines.
 */
export async function writeSettledPayments(
  url: string,
  options: {
    readonly tenant: string;
    readonly lane: string;
    readonly provider: string;
    readonly count: number;
  },
): Promise<SettledPayments> {
  const { tenant, lane, provider, count } = options;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const table of ['payment', 'payment_transition', 'submission']) {
      await client.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
    }
    for (let from = 1; from <= count; from += AT_ONCE) {
      const to = Math.min(count, from + AT_ONCE - 1);
      await client.query(PAYMENTS, [tenant, lane, provider, from, to, STARTED_MS / 1_000, OPEN_EVERY]);
      await client.query(SUBMISSIONS, [from, to]);
      await client.query(TRANSITIONS, [from, to, OPEN_EVERY, STARTED_MS / 1_000]);
    }
    const always = await client.query<{ text: string }>(
      `SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname) AS text FROM pg_trigger
        WHERE NOT tgisinternal AND tgrelid::regclass::text = ANY ($1)`,
      [['payment', 'payment_transition', 'submission']],
    );
    for (const table of ['payment', 'payment_transition', 'submission']) {
      await client.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
    }
    for (const { text } of always.rows) await client.query(text);
    await client.query('VACUUM ANALYZE payment');
    await client.query('VACUUM ANALYZE submission');
  } finally {
    await client.end();
  }
  return { provider, lane, count, open: Math.floor(count / OPEN_EVERY) };
}

const ID = `'pay_' || translate(md5('settled-' || n), '0189', 'ghij')`;

const PAYMENTS = `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency,
    destination, destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after, state,
    version, submission_started_at, provider_ref, next_action_at, created_by, created_at, updated_at)
  SELECT ${ID}, $1, 'settled-' || n, '\\x00', 1, 1000 + n % 100000, 'EUR', '\\x00', 'k', '\\x00', 'k', $3, $2, t.at,
    t.at + interval '1 day', CASE WHEN n % $7 = 0 THEN 'submitted' ELSE 'succeeded' END, 1, t.at, 'po_' || n,
    CASE WHEN n % $7 = 0 THEN clock_timestamp() + interval '1 day' END, 'bench', t.at, t.at
  FROM generate_series($4::integer, $5::integer) n,
    LATERAL (SELECT date_trunc('second', clock_timestamp()) - ($6::integer - n % 86400) * interval '1 second' AS at) t`;

const SUBMISSIONS = `INSERT INTO submission (payment_id, generation, provider_key, parameters, parameters_key_id,
    parameters_sha256, adapter, adapter_version, api_version, credential_id, account, base_url)
  SELECT ${ID}, 1, 'settled-' || n, '\\x00', 'k', '\\x00', 'bench', '1', '1', 'bench', 'bench', 'bench'
  FROM generate_series($1::integer, $2::integer) n`;

const TRANSITIONS = `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, hash, at)
  SELECT ${ID}, 1, 'bench', NULL, CASE WHEN n % $3 = 0 THEN 'submitted' ELSE 'succeeded' END, 'create', 'bench', '\\x00',
    clock_timestamp() - $4::integer * interval '1 second'
  FROM generate_series($1::integer, $2::integer) n`;

/** The provider's file over them: one right row each, in an order of its own, as providers' are. */
export async function writeSettlementFile(path: string, count: number): Promise<number> {
  const file = createWriteStream(path);
  file.write('provider_txn_id,source_id,our_reference,kind,gross,fee,net,currency,booked,available,batch\n');
  const booked = new Date(Date.now() - STARTED_MS + DAY_MS).toISOString();
  let lines: string[] = [];
  for (let i = 0; i < count; i++) {
    // 7,919 is prime to every count that is not its multiple: all rows once, none beside its neighbour.
    const n = count % 7_919 === 0 ? i + 1 : ((i * 7_919) % count) + 1;
    const amount = (amountOf(n) / 100).toFixed(2);
    const net = ((amountOf(n) + 25) / 100).toFixed(2);
    lines.push(
      `txn_${hash('md5', `txn-${n}`)},po_${n},${idOf(n)}/1,payment,-${amount},0.25,-${net},EUR,${booked},${booked},batch_1\n`,
    );
    if (lines.length < LINES_AT_ONCE) continue;
    if (!file.write(lines.join(''))) await once(file, 'drain');
    lines = [];
  }
  file.end(lines.join(''));
  await once(file, 'finish');
  return file.bytesWritten;
}
