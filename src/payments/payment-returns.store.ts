import type { PaymentState } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';

export interface ReturnHead {
  readonly tenant_id: string;
  readonly provider: string;
  readonly state: PaymentState;
  readonly amount: bigint;
  readonly currency: string;
}

const LOCK: Statement = {
  name: 'return-lock-payment',
  text: `SELECT tenant_id, provider, state, amount, currency FROM payment WHERE id = $1 FOR NO KEY UPDATE`,
};

/** The head row, locked until the transaction ends (primary key), or null. */
export async function lockForReturn(tx: Sql, paymentId: string): Promise<ReturnHead | null> {
  return (await tx.query<ReturnHead>(LOCK, [paymentId])).rows[0] ?? null;
}

export interface StoredReturn {
  readonly payment_id: string;
  readonly amount: bigint;
  readonly currency: string;
}

const FIND: Statement = {
  name: 'return-find',
  text: `SELECT payment_id, amount, currency FROM payment_return WHERE provider = $1 AND return_id = $2`,
};

/** The return of this name at the provider (unique index), or null. */
export async function findReturn(tx: Sql, provider: string, returnId: string): Promise<StoredReturn | null> {
  return (await tx.query<StoredReturn>(FIND, [provider, returnId])).rows[0] ?? null;
}

const RETURNED: Statement = {
  name: 'return-sum',
  text: `SELECT coalesce(sum(amount), 0)::bigint AS returned FROM payment_return WHERE payment_id = $1`,
};

/** Minor units that came back so far. */
export async function returnedSoFar(tx: Sql, paymentId: string): Promise<bigint> {
  return (await tx.query<{ returned: bigint }>(RETURNED, [paymentId])).rows[0]?.returned ?? 0n;
}

export interface ReturnRow {
  readonly paymentId: string;
  readonly returnId: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly source: 'webhook' | 'settlement' | 'lookup';
  readonly code: string;
}

const INSERT: Statement = {
  name: 'return-insert',
  text: `INSERT INTO payment_return (payment_id, tenant_id, provider, return_id, amount, currency, source, code)
    SELECT p.id, p.tenant_id, p.provider, $2, $3, $4, $5, $6 FROM payment p WHERE p.id = $1
    ON CONFLICT DO NOTHING`,
};

/** @returns false when a return of this name exists: another transaction was first. */
export async function insertReturn(tx: Sql, row: ReturnRow): Promise<boolean> {
  const { rowCount } = await tx.query(INSERT, [
    row.paymentId,
    row.returnId,
    row.amountMinor,
    row.currency,
    row.source,
    row.code,
  ]);
  return rowCount === 1;
}

const FILE: Statement = {
  name: 'return-file-evidence',
  text: `INSERT INTO evidence (payment_id, tenant_id, source, kind, code, provider_ref, observed_amount, observed_currency)
    SELECT p.id, p.tenant_id, $2, 'returned', $3, $4, $5, $6 FROM payment p
     WHERE p.id = $1 AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.payment_id = p.id AND e.kind = 'returned'
       AND e.provider_ref = $4 AND e.source = $2 AND e.observed_amount = $5 AND e.observed_currency = $6)`,
};

/** Files the news of a return as evidence. Twice: one row. */
export async function fileReturn(tx: Sql, row: ReturnRow): Promise<void> {
  await tx.query(FILE, [row.paymentId, row.source, row.code, row.returnId, row.amountMinor, row.currency]);
}
