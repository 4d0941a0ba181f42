/**
 * Row-level security as the migrations of this release write it. Frozen with them: a later rule is
 * another function.
 */

/** Roles that serve every tenant; no client reaches them. Grants say what each may do with the rows. */
const ALL_TENANTS = 'payments_worker, payments_relay, payments_read, payments_auditor, payments_backup';

/**
 * The tenant of this transaction. After a transaction that had one the setting is empty, not null: an
 * empty one is no tenant either.
 */
export const CURRENT_TENANT = `nullif(current_setting('payments.tenant', true), '')`;

/** Forced, or the owner would pass by. The owner has no policy: it sees no rows. */
function secured(table: string, ofTenant: string): readonly string[] {
  return [
    `ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`,
    `ALTER TABLE ${table} FORCE ROW LEVEL SECURITY`,
    `CREATE POLICY ${table}_of_tenant ON ${table} TO payments_api USING (${ofTenant}) WITH CHECK (${ofTenant})`,
    `CREATE POLICY ${table}_of_all ON ${table} TO ${ALL_TENANTS} USING (true) WITH CHECK (true)`,
  ];
}

/** For a table with `tenant_id`: sessions of the API see and write rows of their transaction's tenant only. */
export function tenantRows(table: string): readonly string[] {
  return secured(table, `tenant_id = ${CURRENT_TENANT}`);
}

/** For a table without `tenant_id` whose rows belong to a payment: its rows are where the payment's are. */
export function rowsOfPayment(table: string): readonly string[] {
  return secured(table, `EXISTS (SELECT 1 FROM payment of_tenant WHERE of_tenant.id = ${table}.payment_id)`);
}
