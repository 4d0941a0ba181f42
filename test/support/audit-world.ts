import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publicKeysOf } from '../../src/audit/anchor-keys.js';
import { copyAnchors, type CopyRun } from '../../src/audit/copy-anchors.js';
import { makeAnchors, type AnchorRun } from '../../src/audit/make-anchors.js';
import { verifyHistory, type VerifyOptions, type VerifyReport } from '../../src/audit/verify.js';
import type { AnchorKeySet } from '../../src/config/key-file.js';
import { seedLane, seedTenant } from './builders.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { paymentIn } from './payment-states.js';
import { until } from './until.js';

/** A set of new anchor keys, all active. */
export function newAnchorKeys(...ids: readonly string[]): AnchorKeySet {
  return {
    active: ids,
    keys: Object.fromEntries(ids.map((id) => [id, randomBytes(32).toString('base64')])),
  };
}

/** Triggers that keep history from being changed, off for one statement of a superuser, and on again. */
const HISTORY = ['payment', 'payment_transition', 'submission', 'submission_attempt', 'evidence', 'audit_anchor',
  'audit_anchor_signature', 'audit_anchor_leaf']; // prettier-ignore

export interface AuditWorld {
  readonly db: TestDatabase;
  readonly keys: AnchorKeySet;
  /** Where copies go; a folder of this test file. */
  readonly folder: string;
  /** A payment of four transitions that ended `returned`. */
  payment(): Promise<string>;
  /** Anchors what is there, once no test of another database on this server holds the horizon back. */
  anchor(keys?: AnchorKeySet, mostTransitions?: number): Promise<AnchorRun>;
  /** Anchors as far as the horizon reaches now. */
  anchorNow(keys?: AnchorKeySet, mostTransitions?: number): Promise<AnchorRun>;
  copy(): Promise<CopyRun>;
  verify(options?: Partial<VerifyOptions>): Promise<VerifyReport>;
  /** What somebody with every right over the database does, unseen by its triggers. */
  tamper(...texts: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export async function createAuditWorld(): Promise<AuditWorld> {
  const db = await createTestDatabase();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  const keys = newAnchorKeys('a1');
  const folder = mkdtempSync(join(tmpdir(), 'payments-anchors-'));
  const anchorNow = (set: AnchorKeySet = keys, mostTransitions?: number): Promise<AnchorRun> =>
    makeAnchors(db.database, {
      keys: set,
      youngMs: 0,
      ...(mostTransitions === undefined ? {} : { mostTransitions }),
    });
  const readReach = async (): Promise<boolean> => {
    const [row] = await db.query<{ reaches: boolean }>(
      `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint
                > (SELECT coalesce(max(xact), 0) FROM payment_transition) AS reaches`,
    );
    return row?.reaches === true;
  };
  return {
    db,
    keys,
    folder,
    payment: () => paymentIn('returned', db.database, { tenant, lane }),
    anchorNow,
    anchor: async (set, mostTransitions) => {
      await until('the end of older transactions', readReach, Boolean);
      return anchorNow(set, mostTransitions);
    },
    copy: () => copyAnchors(db.database, folder),
    verify: (options = {}) =>
      verifyHistory({
        url: db.urlOf('payments_auditor'),
        applicationName: 'test-verify',
        publicKeys: publicKeysOf(keys),
        since: null,
        paymentId: null,
        copies: null,
        ...options,
      }),
    tamper: async (...texts) => {
      const toggle = (how: string): string =>
        HISTORY.map((table) => `ALTER TABLE ${table} ${how} TRIGGER ALL`).join('; ');
      await db.query(['BEGIN', toggle('DISABLE'), ...texts, toggle('ENABLE'), 'COMMIT'].join('; '));
    },
    close: async () => {
      rmSync(folder, { recursive: true, force: true });
      await db.drop();
    },
  };
}
