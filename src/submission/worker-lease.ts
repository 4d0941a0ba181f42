import { randomUUID } from 'node:crypto';
import type { Sql, Statement } from '../persistence/database.js';
import { monotonicMs, pause, wallMs } from '../platform/clock.js';

export const LEASE_MS = 8_000;
const RENEW_MS = 2_000;
/** The lease ends this much earlier for us than for everybody else. */
const SAFETY_MS = 50;

const CREATE: Statement = {
  name: 'worker-create',
  text: `INSERT INTO worker (id, lease_expires_at) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')`,
};
const RENEW: Statement = {
  name: 'worker-renew',
  text: `UPDATE worker SET lease_expires_at = clock_timestamp() + $2 * interval '1 ms'
          WHERE id = $1 AND lease_expires_at > clock_timestamp()`,
};
const REMOVE: Statement = { name: 'worker-remove', text: `DELETE FROM worker WHERE id = $1` };

/** SQL that is true while the worker named by the parameter holds its lease. */
export const leaseAlive = (parameter: string): string =>
  `EXISTS (SELECT 1 FROM worker w WHERE w.id = ${parameter} AND w.lease_expires_at > clock_timestamp())`;

/**
 * This process's row in `worker`. A process that was frozen past its lease takes a new id and
 * tells `onLost`; what it owned before is then somebody else's to judge.
 */
export class WorkerLease {
  private current = '';
  private endsAtMonotonic = 0;
  private endsAtWall = 0;
  private timer: NodeJS.Timeout | null = null;
  private renewing = false;
  private ended = false;

  constructor(
    private readonly sql: Sql,
    private readonly onLost: () => void,
  ) {}

  /** The id that new claims carry. */
  get id(): string {
    return this.current;
  }

  /** Takes a lease; waits for Postgres as long as it must. */
  async start(): Promise<void> {
    await this.takeNew();
    this.timer = setInterval(() => void this.renew(), RENEW_MS);
    this.timer.unref();
  }

  /**
   * True when `owner` is this process's present id and its lease is alive by the monotonic clock
   * and by the wall clock: the monotonic one may stand still while the machine is suspended.
   */
  isHeldBy(owner: string): boolean {
    return (
      owner === this.current &&
      monotonicMs() < this.endsAtMonotonic - SAFETY_MS &&
      wallMs() < this.endsAtWall - SAFETY_MS
    );
  }

  /** Removes the row: what is still owned counts as abandoned at once. Twice: nothing. */
  async end(): Promise<void> {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
    this.ended = true;
    this.endsAtMonotonic = 0;
    await this.sql.query(REMOVE, [this.current]);
  }

  private async takeNew(): Promise<void> {
    while (!this.ended) {
      const id = randomUUID();
      const sentAt = [monotonicMs(), wallMs()] as const;
      try {
        await this.sql.query(CREATE, [id, LEASE_MS]);
        this.current = id;
        this.extend(sentAt);
        return;
      } catch {
        // Without a lease this worker does nothing, so there is nothing better to do than to ask again.
        await pause(200);
      }
    }
  }

  /** The lease counts from before the renewal was sent, so it ends here before it ends there. */
  private extend([monotonic, wall]: readonly [number, number]): void {
    this.endsAtMonotonic = monotonic + LEASE_MS;
    this.endsAtWall = wall + LEASE_MS;
  }

  private async renew(): Promise<void> {
    if (this.renewing) return;
    this.renewing = true;
    try {
      const sentAt = [monotonicMs(), wallMs()] as const;
      const { rowCount } = await this.sql.query(RENEW, [this.current, LEASE_MS]);
      // Given back meanwhile: its answer means nothing any more.
      if (this.ended) return;
      if (rowCount === 1) this.extend(sentAt);
      else {
        await this.takeNew();
        this.onLost();
      }
    } catch {
      // The lease runs on; if Postgres stays away it ends, and isHeldBy says so.
    } finally {
      this.renewing = false;
    }
  }
}
