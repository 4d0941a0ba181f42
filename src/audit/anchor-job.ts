import type { AnchorKeySet } from '../config/key-file.js';
import { Database } from '../persistence/database.js';
import { LockTimeout } from '../persistence/database-errors.js';
import { PeriodicJob } from '../platform/periodic-job.js';
import { ANCHOR_STATEMENT_MS, lockAnchors, prepareAnchoring } from './anchor.store.js';
import { copyAnchors, type CopyRun } from './copy-anchors.js';
import { makeAnchors, type AnchorRefusal, type AnchorRun } from './make-anchors.js';

export const ANCHOR_EVERY_MS = 60_000;
/** Workers tick at their own times: an anchor of the last minute, give or take, is enough. */
const YOUNG_MS = 50_000;
/** The driver waits a little longer than the server, so that the server's word is heard (ms). */
const DRIVER_MARGIN_MS = 5_000;

export interface AnchorEvents {
  /** No anchor can be made until somebody acts. */
  readonly refused: (reason: AnchorRefusal) => void;
  /** The copies tell of another history than this database. */
  readonly copiesDisagree: (run: Exclude<CopyRun, { readonly kind: 'copied' }>) => void;
  readonly fault: (operation: string, error: unknown) => void;
}

export interface AnchorJobOptions {
  readonly url: string;
  /** Read anew for each anchor, so that a rotation needs no restart. */
  readonly keys: () => AnchorKeySet;
  /** null: no copies are made here. */
  readonly folder: string | null;
  readonly events: AnchorEvents;
  readonly everyMs?: number;
}

/**
 * Anchors the history once a minute and copies the anchors, on a connection of its own. Every worker
 * runs one; a lock in the database lets one at a time, and what one missed the next one catches up.
 */
export class AnchorJob {
  private readonly database: Database;
  private readonly job: PeriodicJob<void>;

  constructor(private readonly options: AnchorJobOptions) {
    this.database = new Database({
      url: options.url,
      poolSize: 1,
      applicationName: 'payments-anchors',
      queryMs: ANCHOR_STATEMENT_MS + DRIVER_MARGIN_MS,
    });
    this.job = new PeriodicJob(() => this.anchorAndCopy(), options.everyMs ?? ANCHOR_EVERY_MS);
  }

  /** Runs now and every minute. Throws nothing. */
  start(): void {
    this.job.start();
  }

  /** No run starts after this; resolves when the one under way and the connection have ended. */
  async stop(): Promise<void> {
    await this.job.stop();
    await this.database.close();
  }

  /** One run, never two at once. Throws nothing. */
  run(): Promise<void> {
    return this.job.run();
  }

  private async anchorAndCopy(): Promise<void> {
    const { folder, events } = this.options;
    const run = await this.attempt('anchor', () => this.anchor());
    if (run?.kind === 'refused') events.refused(run.reason);
    if (folder === null) return;
    const copied = await this.attempt('anchor-copy', () => this.copy(folder));
    if (copied && copied.kind !== 'copied') events.copiesDisagree(copied);
  }

  private anchor(): Promise<AnchorRun> {
    return makeAnchors(this.database, { keys: this.options.keys(), youngMs: YOUNG_MS });
  }

  private copy(folder: string): Promise<CopyRun> {
    return this.database.transaction(async (tx) => {
      await lockAnchors(tx);
      await prepareAnchoring(tx);
      return copyAnchors(tx, folder);
    });
  }

  private async attempt<T>(operation: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      // Another worker is at it; the next minute is ours.
      if (!(error instanceof LockTimeout)) this.options.events.fault(operation, error);
      return null;
    }
  }
}
