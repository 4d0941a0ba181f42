import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Events of providers: stored before they are answered, processed afterwards.
 *
 * Locks: `webhook_inbox` is new and disturbs nobody; its foreign key takes SHARE ROW EXCLUSIVE on
 * `payment` for a moment. The index on `payment` holds back writes of payments while it is built
 * (about a second per million rows): an API that waits longer answers 503, and its client repeats.
 * The previous release neither reads nor writes what is new.
 */
const STATEMENTS: readonly string[] = [
  // The event id is unique for ever: providers send again for days, and a restored one for longer.
  `CREATE TABLE webhook_inbox (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     provider text NOT NULL,
     account text NOT NULL,
     event_id text NOT NULL,
     type text NOT NULL,
     occurred_at timestamptz,
     event bytea NOT NULL,
     body bytea NOT NULL,
     key_id text NOT NULL,
     received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     payment_id text CONSTRAINT webhook_inbox_payment REFERENCES payment (id),
     tries integer NOT NULL DEFAULT 0,
     next_try_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     taken_until timestamptz,
     result text,
     processed_at timestamptz,
     CONSTRAINT webhook_inbox_event_unique UNIQUE (provider, account, event_id)) WITH (fillfactor = 80)`,
  `CREATE INDEX webhook_inbox_open ON webhook_inbox (provider, next_try_at, id) WHERE processed_at IS NULL`,
  `CREATE INDEX payment_by_provider_ref ON payment (provider_ref) WHERE provider_ref IS NOT NULL`,
  `CREATE TRIGGER webhook_inbox_no_delete BEFORE DELETE ON webhook_inbox
   FOR EACH ROW EXECUTE FUNCTION refuse_change()`,
  `ALTER TABLE webhook_inbox ENABLE ALWAYS TRIGGER webhook_inbox_no_delete`,
  `CREATE TRIGGER webhook_inbox_no_truncate BEFORE TRUNCATE ON webhook_inbox
   FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()`,
  `ALTER TABLE webhook_inbox ENABLE ALWAYS TRIGGER webhook_inbox_no_truncate`,
];

export class AddWebhookInbox1796300000000 implements MigrationInterface {
  name = 'AddWebhookInbox1796300000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: what a provider told is evidence. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
