import type { Sql, Statement } from '../persistence/database.js';
import { monotonicMs, wallMs } from '../platform/clock.js';

const READ: Statement = {
  name: 'database-clock',
  text: `SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS ms`,
};
const SAMPLES = 5;
/** Above this a ticket is due: somebody's clock is wrong. */
export const SKEW_ALARM_MS = 250;
/** Above this nothing is armed or started until the clocks agree again: late, never early. */
export const SKEW_STOP_MS = 1_000;

/**
 * Postgres's clock, estimated: the sample with the shortest way gives the distance to this
 * process's monotonic clock, and its distance to this process's wall clock is the skew.
 */
export class DatabaseClock {
  private distance: number | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly sql: Sql,
    private readonly onSkew: (skewMs: number) => void,
  ) {}

  /** Measures once, then every `everyMs`. @throws when Postgres cannot be reached the first time. */
  async start(everyMs = 3_000): Promise<void> {
    await this.measure();
    this.timer = setInterval(() => {
      // An unreachable Postgres is seen by whoever needs it; the last distance stays good for now.
      this.measure().catch(() => undefined);
    }, everyMs);
    this.timer.unref();
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  /** Postgres's time now, epoch milliseconds. @throws before the first measurement. */
  nowMs(): number {
    if (this.distance === null) throw new Error('the database clock was not measured yet');
    return monotonicMs() + this.distance;
  }

  /** How far this process's wall clock is ahead of Postgres's, in ms. */
  skewMs(): number {
    return wallMs() - this.nowMs();
  }

  /** True while the two clocks agree well enough to start payments. */
  agrees(): boolean {
    return this.distance !== null && Math.abs(this.skewMs()) <= SKEW_STOP_MS;
  }

  /** Due on Postgres's clock and on our own: a wrong one alone makes payments late, never early. */
  isDue(dueAtMs: number): boolean {
    return this.nowMs() >= dueAtMs && wallMs() >= dueAtMs;
  }

  /** Milliseconds until both clocks say due; 0 or less when they do. */
  untilDueMs(dueAtMs: number): number {
    return dueAtMs - Math.min(this.nowMs(), wallMs());
  }

  private async measure(): Promise<void> {
    let best = Infinity;
    let distance = 0;
    for (let i = 0; i < SAMPLES; i++) {
      const before = monotonicMs();
      const { rows } = await this.sql.query<{ ms: number }>(READ);
      const after = monotonicMs();
      const row = rows[0];
      if (row && after - before < best) {
        best = after - before;
        distance = row.ms - (before + after) / 2;
      }
    }
    this.distance = distance;
    this.onSkew(this.skewMs());
  }
}
