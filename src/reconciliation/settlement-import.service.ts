import type { Database } from '../persistence/database.js';
import type { FollowUpService, FollowedUp } from './follow-up.service.js';
import { MISSING_AT_ONCE, reportMissing } from './missing.store.js';
import {
  findFile,
  finishFile,
  registerFile,
  type SettlementFormat,
  type StoredFile,
} from './settlement-file.store.js';
import { BOOKING_LAG_MS, type Reading } from './settlement-line.js';
import { readReport, type SettlementReport } from './settlement-report.store.js';
import { identifyFile, readSettlement } from './settlement-source.js';
import {
  askPortion,
  NOTHING_TOLD,
  PortionLost,
  storePortion,
  type Portion,
  type Told,
} from './store-portion.js';

/** Rows of one transaction: large enough that its commit costs nothing, short enough to end in time. */
const ROWS_AT_ONCE = 2_000;
/** Another import that stores the same lines is met again at most this often. */
const TRIES = 5;
/** Rounds of missing payments: bounded, whatever the table holds. */
const MISSING_ROUNDS = 1_000;
/** Rows of trouble that a report names. */
const TROUBLE_NAMED = 1_000;

/** SQLSTATE of a deadlock: one of two imports was undone whole and may go again. */
const DEADLOCK = '40P01';

export interface ImportRequest {
  readonly path: string;
  readonly provider: string;
  readonly format: SettlementFormat;
  readonly onProgress?: (progress: ImportProgress) => void;
}

export interface ImportProgress {
  readonly phase: 'identify' | 'read' | 'settle' | 'missing';
  readonly bytes: number;
  readonly rows: number;
}

export interface ImportResult {
  readonly report: SettlementReport;
  /** These bytes were imported before: nothing was read again. */
  readonly wasKnown: boolean;
  readonly followedUp: FollowedUp;
}

/** Imports settlement files: stores their rows, settles by them, and reports what does not fit. */
export class SettlementImportService {
  /**
   * @param database pool whose statements go by index.
   * @param wholeTables pool with a longer limit, for the looks at everything.
   */
  constructor(
    private readonly database: Database,
    private readonly wholeTables: Database,
    private readonly followUps: FollowUpService,
  ) {}

  /**
   * Streams the file in constant memory. The same bytes again change nothing; the same rows in other
   * bytes are known and change nothing; an import that was killed goes on after its last commit.
   * @throws UnusableFile; PortionLost when another import of this file is under way; faults of storage:
   * what was committed stays, import again. Twice: the same report.
   */
  async importFile(request: ImportRequest): Promise<ImportResult> {
    const { path, provider, format } = request;
    const tell = request.onProgress ?? ((): void => undefined);
    const identity = await identifyFile(path, (bytes) => tell({ phase: 'identify', bytes, rows: 0 }));
    const known = await findFile(this.database, provider, identity.sha256);
    const wasKnown = known?.isFinished === true;
    if (!wasKnown) {
      let read = 0;
      const readings = readSettlement(path, known?.format ?? format, identity, (bytes) => (read = bytes));
      // Nothing is registered of a file whose first row cannot be reached: it is no settlement file.
      const first = await readings.next();
      const file = await registerFile(this.database, { provider, format, ...identity });
      await this.storeAll(file, first.done === true ? [] : first.value, readings, (rows) =>
        tell({ phase: 'read', bytes: read, rows }),
      );
      await finishFile(this.database, file.id);
    }
    const followedUp = await this.followUps.run((rows) => tell({ phase: 'settle', bytes: 0, rows }));
    const file = await this.finished(provider, identity.sha256);
    await this.findMissing(file, (rows) => tell({ phase: 'missing', bytes: 0, rows }));
    const options = { limit: TROUBLE_NAMED, lagMs: BOOKING_LAG_MS };
    return { report: await readReport(this.wholeTables, file, options), wasKnown, followedUp };
  }

  private async finished(provider: string, sha256: Buffer): Promise<StoredFile> {
    const file = await findFile(this.database, provider, sha256);
    if (!file) throw new Error('a settlement file is gone, which the database rules out');
    return file;
  }

  /**
   * Three steps at once: a portion is stored while the next one's questions are answered and the one after
   * that is read. At most three are in memory. Most files are new: stored lines are looked for from the
   * first one on that is met.
   */
  private async storeAll(
    file: StoredFile,
    first: readonly Reading[],
    rest: AsyncIterator<readonly Reading[]>,
    onRows: (rows: number) => void,
  ): Promise<void> {
    let done = file.rowsDone;
    let told = NOTHING_TOLD;
    let looksForLines = false;
    let storing: Promise<void> = Promise.resolve();
    const store = (asked: Promise<Portion>): void => {
      storing = (async () => {
        const stored = await this.storeOne(file, done, await asked, told);
        done = stored.rowsDone;
        told = stored.told;
        looksForLines ||= stored.metLines;
        onRows(done);
      })();
      // Awaited below; until then a failure must not count as unhandled.
      storing.catch(() => undefined);
    };
    try {
      for await (const portion of portions(first, rest, file.rowsDone)) {
        // Everything but the portion that is being stored now is visible to these questions.
        const asked = askPortion(this.database, file.provider, portion, looksForLines);
        asked.catch(() => undefined);
        await storing;
        store(asked);
      }
    } finally {
      // Also when the file turns out to be broken: what was read before that is stored.
      await storing;
    }
  }

  private async storeOne(
    file: StoredFile,
    rowsDone: number,
    asked: Portion,
    before: Told,
  ): Promise<{ readonly rowsDone: number; readonly told: Told; readonly metLines: boolean }> {
    let portion = asked;
    let metLines = false;
    for (let tries = 1; ; tries++) {
      try {
        return { ...(await storePortion(this.database, file, rowsDone, portion, before)), metLines };
      } catch (error) {
        const isPassing =
          (error instanceof PortionLost && error.why === 'same_line') ||
          (error as { code?: unknown }).code === DEADLOCK;
        if (!isPassing || tries >= TRIES) throw error;
        // What is stored, by this file or another, is known now.
        portion = await askPortion(this.database, file.provider, portion.readings, true);
        metLines ||= error instanceof PortionLost;
      }
    }
  }

  private async findMissing(file: StoredFile, onFound: (payments: number) => void): Promise<void> {
    let found = 0;
    for (let round = 0; round < MISSING_ROUNDS; round++) {
      const ids = await reportMissing(this.wholeTables, file, BOOKING_LAG_MS);
      found += ids.length;
      onFound(found);
      if (ids.length < MISSING_AT_ONCE) return;
    }
  }
}

/**
 * Portions of an even size, without the rows that an earlier run stored. A file that breaks gives what
 * was read of it first.
 */
async function* portions(
  first: readonly Reading[],
  rest: AsyncIterator<readonly Reading[]>,
  skip: number,
): AsyncGenerator<readonly Reading[]> {
  let waiting: Reading[] = [];
  let seen = 0;
  let next: Next = { readings: first };
  while ('readings' in next) {
    for (const reading of next.readings) {
      if (++seen > skip) waiting.push(reading);
      if (waiting.length < ROWS_AT_ONCE) continue;
      yield waiting;
      waiting = [];
    }
    next = await nextOf(rest);
  }
  if (waiting.length > 0) yield waiting;
  if (next.fault !== null) throw next.fault;
}

type Next = { readonly readings: readonly Reading[] } | { readonly fault: Error | null };

async function nextOf(rest: AsyncIterator<readonly Reading[]>): Promise<Next> {
  try {
    const next = await rest.next();
    return next.done === true ? { fault: null } : { readings: next.value };
  } catch (error) {
    return { fault: error instanceof Error ? error : new Error('the file cannot be read', { cause: error }) };
  }
}
