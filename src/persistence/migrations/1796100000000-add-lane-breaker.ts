import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What keeps a lane back: the wait that a provider asked for, the breaker, and the one probe that may
 * go meanwhile; who paused it; and which attempts were probes, since these use no payment's budget.
 *
 * Locks: every column has a constant default or none, so nothing is rewritten; `lane` and
 * `submission_attempt` are locked exclusively for a moment, and no check reads more than the few lanes.
 * Safe beside the previous release, which neither reads nor writes these columns: its workers go on
 * sending while a lane waits, until they are replaced.
 */
const STATEMENTS: readonly string[] = [
  `ALTER TABLE lane
     ADD COLUMN paused_by text,
     ADD COLUMN resumed_at timestamptz,
     ADD COLUMN resumed_by text,
     ADD COLUMN wait_until timestamptz,
     ADD COLUMN throttle_step smallint NOT NULL DEFAULT 0,
     ADD COLUMN breaker_enabled boolean NOT NULL DEFAULT true,
     ADD COLUMN breaker text NOT NULL DEFAULT 'closed',
     ADD COLUMN breaker_reason text,
     ADD COLUMN recent text NOT NULL DEFAULT '',
     ADD COLUMN opened_at timestamptz,
     ADD COLUMN probe_at timestamptz,
     ADD COLUMN probe_step smallint NOT NULL DEFAULT 0,
     ADD COLUMN probe_payment_id text,
     ADD COLUMN probe_generation smallint,
     ADD COLUMN probe_no smallint,
     ADD COLUMN probe_until timestamptz,
     ADD CONSTRAINT lane_breaker_known CHECK (breaker IN ('closed', 'open', 'half_open')),
     ADD CONSTRAINT lane_breaker_says_since CHECK ((breaker = 'closed') = (opened_at IS NULL)
       AND (breaker = 'closed') = (probe_at IS NULL) AND (breaker = 'closed') = (breaker_reason IS NULL)),
     ADD CONSTRAINT lane_recent_form CHECK (recent ~ '^[01]{0,20}$')`,
  `ALTER TABLE submission_attempt ADD COLUMN is_probe boolean NOT NULL DEFAULT false`,
];

export class AddLaneBreaker1796100000000 implements MigrationInterface {
  name = 'AddLaneBreaker1796100000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  /** Forward only: the history of payments is never dropped by a program. */
  async down(): Promise<void> {
    throw new Error('Migrations go forward only. Restore a backup instead.');
  }
}
