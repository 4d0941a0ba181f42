import type { MigrationInterface, QueryRunner } from 'typeorm';
import { tenantRows } from './row-security.sql.js';

/**
 * Events to clients: their endpoints, and one delivery for each endpoint and transition.
 *
 * Locks: both tables are new and disturb nobody; the foreign key takes SHARE ROW EXCLUSIVE on `tenant`
 * and the trigger on `payment_transition` for a moment: moves wait for it. The previous release neither
 * reads nor writes what is new; its transitions are told all the same, since the trigger tells them.
 */
const TABLES: readonly string[] = [
  `CREATE TABLE webhook_endpoint (
     id text PRIMARY KEY CONSTRAINT webhook_endpoint_id_form CHECK (id ~ '^whe_[0-9a-f]{32}$'),
     tenant_id text NOT NULL CONSTRAINT webhook_endpoint_tenant REFERENCES tenant (id),
     url text NOT NULL,
     description text,
     event_types text[],
     status text NOT NULL DEFAULT 'active'
       CONSTRAINT webhook_endpoint_status CHECK (status IN ('active', 'disabled', 'deleted')),
     status_reason text CONSTRAINT webhook_endpoint_reason CHECK (status_reason IN ('by_request', 'gone', 'failing')),
     status_changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     secret bytea,
     secret_key_id text,
     previous_secret bytea,
     previous_secret_key_id text,
     previous_secret_until timestamptz,
     failing_since timestamptz,
     failures integer NOT NULL DEFAULT 0,
     replay_from timestamptz,
     replay_asked_at timestamptz,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     created_by text NOT NULL,
     CONSTRAINT webhook_endpoint_secret CHECK ((secret IS NULL) = (status = 'deleted')
       AND (secret IS NULL) = (secret_key_id IS NULL)),
     CONSTRAINT webhook_endpoint_previous_secret CHECK ((previous_secret IS NULL) = (previous_secret_key_id IS NULL)
       AND (previous_secret IS NULL) = (previous_secret_until IS NULL)))`,
  `CREATE INDEX webhook_endpoint_by_tenant ON webhook_endpoint (tenant_id, created_at, id)`,
  `CREATE INDEX webhook_endpoint_active ON webhook_endpoint (tenant_id) WHERE status = 'active'`,

  // No foreign keys: each transition of a tenant would lock the rows of its endpoints.
  `CREATE TABLE webhook_delivery (
     endpoint_id text NOT NULL,
     payment_id text NOT NULL,
     version integer NOT NULL,
     tenant_id text NOT NULL,
     state text NOT NULL,
     occurred_at timestamptz NOT NULL,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     next_try_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     taken_until timestamptz,
     takes integer NOT NULL DEFAULT 0,
     tries integer NOT NULL DEFAULT 0,
     last_try_at timestamptz,
     last_code text,
     last_http_status smallint,
     last_ms integer,
     result text CONSTRAINT webhook_delivery_result CHECK (result IN ('delivered', 'given_up')),
     done_at timestamptz,
     PRIMARY KEY (endpoint_id, payment_id, version),
     CONSTRAINT webhook_delivery_done_with_result CHECK ((done_at IS NULL) = (result IS NULL))) WITH (fillfactor = 80)`,
  `CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint_id, next_try_at, payment_id, version)
     WHERE done_at IS NULL`,
  `CREATE INDEX webhook_delivery_log ON webhook_delivery (endpoint_id, created_at, payment_id, version)`,
];

/**
 * Every transition passes here, whoever writes it; in its transaction, so neither exists without the
 * other. For each row and not for each statement: the look-up of one tenant's endpoints is one probe of
 * a partial index, while a join with the new rows reads every tenant's endpoints.
 */
const TELL: readonly string[] = [
  `CREATE FUNCTION payment_transition_tell_clients() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM webhook_endpoint e WHERE e.tenant_id = NEW.tenant_id AND e.status = 'active') THEN
    INSERT INTO webhook_delivery (endpoint_id, payment_id, version, tenant_id, state, occurred_at)
    SELECT e.id, NEW.payment_id, NEW.seq, NEW.tenant_id, NEW.to_state, NEW.at
      FROM webhook_endpoint e
     WHERE e.tenant_id = NEW.tenant_id AND e.status = 'active'
       AND (e.event_types IS NULL OR 'payment.' || NEW.to_state = ANY (e.event_types));
  END IF;
  RETURN NULL;
END $$`,
  `CREATE TRIGGER payment_transition_told AFTER INSERT ON payment_transition
   FOR EACH ROW EXECUTE FUNCTION payment_transition_tell_clients()`,
  // ALWAYS, as every trigger of the table: a session in replica mode must not slip past.
  `ALTER TABLE payment_transition ENABLE ALWAYS TRIGGER payment_transition_told`,
];

const ENDPOINT_READABLE = `id, tenant_id, url, description, event_types, status, status_reason, status_changed_at,
  secret_key_id, previous_secret_key_id, previous_secret_until, failing_since, failures, replay_from, replay_asked_at,
  created_at, created_by`;
const STATUS = `status, status_reason, status_changed_at, failing_since, failures, replay_from, replay_asked_at`;
const SECRETS = `secret, secret_key_id, previous_secret, previous_secret_key_id, previous_secret_until`;

const ACCESS: readonly string[] = [
  ...tenantRows('webhook_endpoint'),
  ...tenantRows('webhook_delivery'),
  `GRANT SELECT, INSERT, UPDATE (${STATUS}, ${SECRETS}) ON webhook_endpoint TO payments_api`,
  `GRANT SELECT, INSERT, UPDATE (next_try_at, tries, result, done_at) ON webhook_delivery TO payments_api`,
  `GRANT SELECT, UPDATE (${STATUS}) ON webhook_endpoint TO payments_worker`,
  `GRANT SELECT, INSERT, DELETE, UPDATE (next_try_at, taken_until, takes, tries, last_try_at, last_code,
     last_http_status, last_ms, result, done_at) ON webhook_delivery TO payments_worker`,
  `GRANT SELECT (${ENDPOINT_READABLE}) ON webhook_endpoint TO payments_read, payments_auditor`,
  `GRANT SELECT ON webhook_delivery TO payments_read, payments_auditor`,
  `GRANT SELECT ON webhook_endpoint, webhook_delivery TO payments_backup`,
];

/** Managing endpoints is a client's own business, so its machines may. Reads the few rows of keys once. */
const MACHINES_MANAGE: readonly string[] = [
  `ALTER TABLE api_key
     DROP CONSTRAINT api_key_scopes_of_machines,
     ADD CONSTRAINT api_key_scopes_of_machines CHECK (scopes <@ ARRAY['payments:create', 'payments:read',
       'payments:cancel', 'payments:update', 'webhooks:manage'])`,
];

export class AddClientWebhooks1796550000000 implements MigrationInterface {
  name = 'AddClientWebhooks1796550000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...TABLES, ...TELL, ...ACCESS, ...MACHINES_MANAGE])
      await runner.query(statement);
  }

  /** Forward only. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
