import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PaymentReturns } from '../../src/payments/payment-returns.service.js';
import { FollowUpService } from '../../src/reconciliation/follow-up.service.js';
import { SILENT_EVENTS } from '../../src/reconciliation/reconciliation-events.js';
import { ReconciliationService } from '../../src/reconciliation/reconciliation.service.js';
import {
  SettlementImportService,
  type ImportResult,
} from '../../src/reconciliation/settlement-import.service.js';
import type { SettlementFormat } from '../../src/reconciliation/settlement-file.store.js';
import type { TestDatabase } from './database.js';
import type { WorldPayment } from './settlement-generator.js';

const FROZEN_TABLES = ['payment', 'payment_transition', 'submission'];

/**
 * Thousands of payments that ended long ago, written by one statement each with every trigger off:
 * their states, money and transitions are as lawful lives would have left them, their hashes are not.
 * @param mix how many of each state, in the order of the result.
 */
export async function bulkPayments(
  db: TestDatabase,
  options: {
    readonly tenant: string;
    readonly lane: string;
    readonly provider?: string;
    readonly mix: readonly (readonly [state: WorldPayment['state'], count: number])[];
    /** Epoch ms of the first start; each next one is a second later. */
    readonly startedAtMs: number;
  },
): Promise<readonly WorldPayment[]> {
  const states = options.mix.flatMap(([state, count]) => Array.from({ length: count }, () => state));
  const query = (text: string, values: readonly unknown[] = []): Promise<unknown> => db.query(text, values);
  for (const table of FROZEN_TABLES) await query(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
  await query(
    `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency, destination,
       destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after, state, version,
       submission_started_at, provider_ref, next_action_at, created_by)
     SELECT 'pay_' || translate(md5($1 || t.n), '0189', 'ghij'), $1, 'key-' || $2 || t.n, '\\x00', 1,
       1000 + t.n, (ARRAY['EUR', 'JPY', 'KWD'])[t.n % 3 + 1], '\\x00', 'k', '\\x00', 'k', $6, $2,
       s.at, s.at + interval '1 day', t.state, 4, CASE WHEN t.state = 'cancelled' THEN NULL ELSE s.at END,
       CASE WHEN t.state IN ('succeeded', 'submitted') THEN 'po_' || $2 || '_' || t.n END,
       CASE WHEN t.state IN ('unknown', 'submitted') THEN clock_timestamp() + interval '1 hour' END, 'test'
     FROM unnest($3::text[]) WITH ORDINALITY AS t (state, n),
       LATERAL (SELECT to_timestamp($4::double precision) + t.n * interval '1 second' AS at) s
     WHERE $5::text = 'bulk'`,
    [
      options.tenant,
      options.lane,
      states,
      options.startedAtMs / 1_000,
      'bulk',
      options.provider ?? 'simulated',
    ],
  );
  await query(
    `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor, hash)
     SELECT p.id, s.seq, p.tenant_id, CASE s.seq WHEN 1 THEN NULL ELSE 'scheduled' END,
       CASE s.seq WHEN 4 THEN p.state ELSE 'scheduled' END, 'reschedule', 'test', sha256('x'::bytea)
     FROM payment p, generate_series(1, 4) s (seq) WHERE p.lane = $1`,
    [options.lane],
  );
  await query(
    `INSERT INTO submission (payment_id, generation, provider_key, parameters, parameters_key_id, parameters_sha256,
       adapter, adapter_version, api_version, credential_id, account, base_url)
     SELECT p.id, 1, 'key-' || p.id, '\\x00', 'k', '\\x00', 'simulated', '1', '1', 'test', 'test', 'http://127.0.0.1'
     FROM payment p WHERE p.lane = $1 AND p.submission_started_at IS NOT NULL`,
    [options.lane],
  );
  await query(
    `INSERT INTO review_case (payment_id, tenant_id, reason, due_at)
     SELECT id, tenant_id, 'inquiry_exhausted', clock_timestamp() + interval '4 hours' FROM payment
      WHERE lane = $1 AND state = 'needs_review'`,
    [options.lane],
  );
  await enableTriggers(db);
  await query('ANALYZE');
  const rows = await db.query<{
    id: string;
    n: number;
    amount: bigint;
    currency: string;
    state: string;
    ms: number;
  }>(
    `SELECT id, amount, currency, state, extract(epoch FROM execute_at) * 1000 AS ms FROM payment
      WHERE lane = $1 ORDER BY amount`,
    [options.lane],
  );
  return rows.map((row, i) => ({
    id: row.id,
    amount: row.amount,
    currency: row.currency as WorldPayment['currency'],
    providerRef: `po_${options.lane}_${i + 1}`,
    startedAtMs: Number(row.ms),
    state: row.state as WorldPayment['state'],
  }));
}

/** Payments that succeeded when the truth of the simulator's generator says; one statement for each table. */
export async function insertTruth(
  db: TestDatabase,
  truth: readonly {
    readonly id: string;
    readonly providerRef: string;
    readonly amountMinor: string;
    readonly currency: string;
    readonly at: string;
  }[],
  of: { readonly tenant: string; readonly lane: string; readonly provider: string },
): Promise<void> {
  for (const table of FROZEN_TABLES) await db.query(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
  await db.query(
    `INSERT INTO payment (id, tenant_id, idempotency_key, fingerprint, fingerprint_version, amount, currency, destination,
       destination_key_id, destination_digest, digest_key_id, provider, lane, execute_at, not_after, state,
       submission_started_at, provider_ref, created_by)
     SELECT t.id, $1, t.id, '\\x00', 1, t.amount, t.currency, '\\x00', 'k', '\\x00', 'k', $3, $2, t.at,
       t.at + interval '1 day', 'succeeded', t.at, t.ref, 'test'
     FROM unnest($4::text[], $5::text[], $6::bigint[], $7::text[], $8::timestamptz[]) AS t (id, ref, amount, currency, at)`,
    [
      of.tenant,
      of.lane,
      of.provider,
      truth.map((t) => t.id),
      truth.map((t) => t.providerRef),
      truth.map((t) => t.amountMinor),
      truth.map((t) => t.currency),
      truth.map((t) => t.at),
    ],
  );
  await db.query(
    `INSERT INTO payment_transition (payment_id, seq, tenant_id, to_state, cause, actor, hash)
     SELECT id, 1, tenant_id, 'succeeded', 'create', 'test', '' FROM payment WHERE lane = $1`,
    [of.lane],
  );
  await db.query(
    `INSERT INTO submission (payment_id, generation, provider_key, parameters, parameters_key_id, parameters_sha256,
       adapter, adapter_version, api_version, credential_id, account, base_url)
     SELECT id, 1, 'key-' || id, '\\x00', 'k', '\\x00', 'simulated', '1', '1', 'test', 'test', 'http://127.0.0.1'
     FROM payment WHERE lane = $1`,
    [of.lane],
  );
  await enableTriggers(db);
  await db.query('ANALYZE');
}

/** Some of them are ENABLE ALWAYS, which ENABLE ALL would forget. */
async function enableTriggers(db: TestDatabase): Promise<void> {
  const triggers = await db.query<{ name: string; owner: string }>(
    `SELECT tgname AS name, tgrelid::regclass::text AS owner FROM pg_trigger
      WHERE NOT tgisinternal AND tgrelid::regclass::text = ANY ($1)`,
    [FROZEN_TABLES],
  );
  for (const table of FROZEN_TABLES) await db.query(`ALTER TABLE ${table} ENABLE TRIGGER ALL`);
  for (const { name, owner } of triggers)
    await db.query(`ALTER TABLE ${owner} ENABLE ALWAYS TRIGGER ${name}`);
}

export interface ImportRig {
  readonly service: SettlementImportService;
  readonly followUps: FollowUpService;
  readonly scheduled: ReconciliationService;
  /** Writes the text to a file of its own and imports it. */
  import(
    text: string | Buffer,
    options?: { provider?: string; format?: SettlementFormat },
  ): Promise<ImportResult>;
  /** The path of a file with this content, removed by `close`. */
  write(text: string | Buffer): string;
  close(): void;
}

/** The product's import on a test's database. */
export function importRig(db: TestDatabase): ImportRig {
  const folder = mkdtempSync(join(tmpdir(), 'payments-test-settlement-'));
  const whole = db.connect('test-whole');
  const returns = new PaymentReturns(db.database, { nudge: () => undefined });
  const followUps = new FollowUpService(db.database, returns, SILENT_EVENTS);
  const service = new SettlementImportService(db.database, whole, followUps);
  let files = 0;
  const write = (text: string | Buffer): string => {
    const path = join(folder, `file-${++files}`);
    writeFileSync(path, text);
    return path;
  };
  return {
    service,
    followUps,
    scheduled: new ReconciliationService(db.database, followUps),
    write,
    import: (text, { provider = 'simulated', format = 'csv' } = {}) =>
      service.importFile({ path: write(text), provider, format }),
    close: () => rmSync(folder, { recursive: true }),
  };
}

const HEADER = 'provider_txn_id,source_id,our_reference,kind,gross,fee,net,currency,booked,available,batch';

export interface LineSeed {
  readonly txn: string;
  readonly paymentId?: string | null;
  readonly generation?: number;
  readonly source?: string;
  readonly kind?: string;
  /** Decimal text. */
  readonly gross?: string;
  readonly fee?: string;
  readonly net?: string;
  readonly currency?: string;
  /** RFC 3339. */
  readonly booked?: string;
}

/** A file over these lines; a line's amounts are those of the payment that builders make by default. */
export function settlementCsv(lines: readonly LineSeed[], options: { readonly note?: string } = {}): string {
  const rows = lines.map((line) =>
    [
      line.txn,
      line.source ?? '',
      line.paymentId == null ? '' : `${line.paymentId}/${line.generation ?? 1}`,
      line.kind ?? 'payment',
      line.gross ?? '-19.99',
      line.fee ?? '0.00',
      line.net ?? line.gross ?? '-19.99',
      line.currency ?? 'EUR',
      line.booked ?? new Date().toISOString(),
      '',
      options.note ?? '',
    ].join(','),
  );
  return [HEADER, ...rows, ''].join('\n');
}
