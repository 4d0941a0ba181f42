/**
 * The database's roles. Each process logs in as the one that may do least: what a role may touch is
 * `GRANTS`. They are roles of the whole server; migrations make the missing ones without a log-in.
 */
export const DATABASE_ROLES = [
  /** Owns the schema and migrates it; runs no process. */
  'payments_owner',
  /** The API: rows of one tenant at a time (`Database.ofTenant`), no attempts. */
  'payments_api',
  /** The worker, and operations that act as one: every tenant. */
  'payments_worker',
  /** Publishes the outbox, beside the API and in the worker. */
  'payments_relay',
  /** Invariants and metrics: reads everything but ciphertext and digests of keys. */
  'payments_read',
  /** Verifies the history: reads what `payments_read` reads. */
  'payments_auditor',
  /** Tenants, API keys and limits; no payment. */
  'payments_admin',
  /** Reads everything, for copies. */
  'payments_backup',
] as const;
export type DatabaseRole = (typeof DATABASE_ROLES)[number];

/** The setting that says whose rows a session of `payments_api` works on, for one transaction. */
export const TENANT_SETTING = 'payments.tenant';
