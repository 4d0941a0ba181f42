import * as metrics from '../metrics/metrics.js';
import { Database, type Statement } from '../persistence/database.js';
import type { Log } from '../platform/logger.js';
import { PeriodicJob } from '../platform/periodic-job.js';
import { checkInvariant, type InvariantResult } from './check-invariants.js';
import type { Invariant } from './invariant.js';
import { INVARIANTS } from './invariants.js';

export const INVARIANTS_EVERY_MS = 60_000;
/** A look at everything may cost no more than this, so that growth of the tables cannot hurt the gate. */
const FULL_LIMIT_MS = 500;
/** The limit of every other query of the job. */
const RECENT_LIMIT_MS = 5_000;
/** An invariant that became too slow for a full look gets the next one after this. */
const FULL_AGAIN_MS = 24 * 3_600_000;
/** Transitions become visible when their transaction ends, at most 8 s after their time. */
const OVERLAP_S = 60;
/** How many broken payments of one invariant a run logs. */
const MOST_LOGGED = 5;

const NOW_LESS_OVERLAP: Statement = {
  name: 'invariant-since',
  text: `SELECT clock_timestamp() - $1::double precision * interval '1 second' AS at`,
};

interface Memory {
  /** Monotonic ms before which no full look is tried. */
  fullAgainAtMs: number;
  /** Broken payments of earlier looks: only a full look may forget them. */
  readonly broken: Set<string>;
}

/** An alarm needs no more of them. */
const MOST_REMEMBERED = 10_000;

function remember(memory: Memory, ids: readonly string[]): void {
  for (const id of ids) if (memory.broken.size < MOST_REMEMBERED) memory.broken.add(id);
}

/**
 * Checks every invariant once a minute on a connection of its own and tells metrics and log. As
 * long as a full look takes less than half a second it looks at everything; past that at what
 * changed since the last run, with a full look tried once a day.
 */
export class InvariantJob {
  private readonly database: Database;
  private readonly memory = new Map<number, Memory>();
  private since: string | null = null;
  private readonly job: PeriodicJob<readonly InvariantResult[]>;

  constructor(
    private readonly options: { readonly url: string; readonly log: Log; readonly everyMs?: number },
  ) {
    this.database = new Database({ url: options.url, poolSize: 1, applicationName: 'payments-invariants' });
    this.job = new PeriodicJob(() => this.checkAll(), options.everyMs ?? INVARIANTS_EVERY_MS);
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

  /** One run over all invariants, never two at once. @returns a result for each. Throws nothing. */
  run(): Promise<readonly InvariantResult[]> {
    return this.job.run();
  }

  private async checkAll(): Promise<readonly InvariantResult[]> {
    const since = this.since;
    const next = await this.readSince();
    const results: InvariantResult[] = [];
    for (const invariant of INVARIANTS) {
      const result = await this.check(invariant, since);
      this.report(result);
      results.push(result);
    }
    if (next !== null && results.every((result) => result.kind === 'checked')) {
      this.since = next;
      metrics.invariantLastRunSeconds.set({}, Date.now() / 1_000);
    }
    return results;
  }

  private async readSince(): Promise<string | null> {
    try {
      const { rows } = await this.database.query<{ at: string }>(NOW_LESS_OVERLAP, [OVERLAP_S]);
      return rows[0]?.at ?? null;
    } catch (error) {
      this.options.log.warn({ err: error }, 'invariants_clock_failed');
      return null;
    }
  }

  private async check(invariant: Invariant, since: string | null): Promise<InvariantResult> {
    const memory = this.memoryOf(invariant);
    if (!invariant.scoped) {
      return checkInvariant(this.database, invariant, { since: null, limitMs: RECENT_LIMIT_MS });
    }
    // The first run has no earlier one to start from: it gets the longer limit.
    const fullLimitMs = since === null ? RECENT_LIMIT_MS : FULL_LIMIT_MS;
    if (since === null || performance.now() >= memory.fullAgainAtMs) {
      const full = await checkInvariant(this.database, invariant, { since: null, limitMs: fullLimitMs });
      if (full.kind === 'checked') {
        memory.broken.clear();
        remember(memory, full.ids);
        return full;
      }
      if (full.code === 'failed') return full;
      memory.fullAgainAtMs = performance.now() + FULL_AGAIN_MS;
    }
    const from = since ?? (await this.readSince());
    const recent = await checkInvariant(this.database, invariant, { since: from, limitMs: RECENT_LIMIT_MS });
    if (recent.kind === 'unchecked') return recent;
    remember(memory, recent.ids);
    return { ...recent, count: Math.max(recent.count, memory.broken.size) };
  }

  private memoryOf(invariant: Invariant): Memory {
    const known = this.memory.get(invariant.id);
    if (known) return known;
    const memory = { fullAgainAtMs: 0, broken: new Set<string>() };
    this.memory.set(invariant.id, memory);
    return memory;
  }

  private report(result: InvariantResult): void {
    const id = String(result.id);
    if (result.kind === 'unchecked') {
      metrics.invariantViolations.set({ id }, -1);
      this.options.log.error({ err: result.cause, operation: `invariant-${id}` }, 'invariant_unchecked');
      return;
    }
    metrics.invariantViolations.set({ id }, result.count);
    for (const paymentId of result.ids.slice(0, MOST_LOGGED)) {
      this.options.log.error({ payment_id: paymentId, operation: `invariant-${id}` }, 'invariant_violated');
    }
  }
}
