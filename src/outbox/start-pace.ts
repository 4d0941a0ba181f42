import { START_LEAD_MS } from '../domain/start-lead.js';
import type { Sql } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import { hasStaleStarts, isPressed } from './outbox.store.js';

/** What is far off goes on at this pace meanwhile: rows by one look, and ms between two looks. */
const TRICKLE = 10;
const TRICKLE_EVERY_MS = 1_000;
/** While creates come in faster than this (commits of the last second), starts wait behind them. */
const BUSY_NUDGES = 100;
const BUSY_PUBLISHERS = 1;
/** Busy is over this long after the last commit (ms). */
const BUSY_FOR_MS = 2_000;
/** How often Postgres is asked whether there is more urgent work (ms). */
const LOOK_EVERY_MS = 1_000;
/** A relay with a neighbour leaves it starts that are due later than this and younger than these (ms). */
const NEIGHBOUR_WITHIN_MS = 60_000;
const NEIGHBOUR_STALE_MS = 30_000;
const NEIGHBOUR_STALE_FAR_MS = 600_000;

/** What the next batch of starts may hold. */
export interface StartReach {
  /** Due within this time (ms); null: whenever. */
  readonly withinMs: number | null;
  readonly limit: number;
}

export interface StartPaceOptions {
  /**
   * True for a worker's relay: the relay beside the API hears of each commit at once, so this one
   * takes what is due soon and what has waited for long. Two would only share one orchestrator.
   */
  readonly hasNeighbour: boolean;
}

/**
 * Which starts a relay publishes now. A start costs the orchestrator as much as paying a payment, and a
 * payment that is due tomorrow needs its workflow tomorrow: while creates or payments that are due keep
 * the machine busy, starts that are far off only trickle.
 */
export class StartPace {
  private nudges = 0;
  private nudgesSinceMs = -Infinity;
  private isBusy = false;
  private pressed = false;
  private lookedAtMs = -Infinity;
  private trickledAtMs = -Infinity;
  private leavesMost = false;

  constructor(
    private readonly sql: Sql,
    private readonly options: StartPaceOptions,
  ) {}

  /** A commit just left a start. */
  nudge(): void {
    const now = monotonicMs();
    if (now - this.nudgesSinceMs >= 1_000) {
      this.isBusy = this.nudges > BUSY_NUDGES;
      this.nudges = 0;
      this.nudgesSinceMs = now;
    }
    this.nudges++;
  }

  /** Asks Postgres how urgent other work is, at most once a second. @throws faults of storage. */
  async look(): Promise<void> {
    if (monotonicMs() - this.lookedAtMs < LOOK_EVERY_MS) return;
    this.lookedAtMs = monotonicMs();
    this.pressed = await isPressed(this.sql);
    this.leavesMost =
      this.options.hasNeighbour &&
      !(await hasStaleStarts(this.sql, {
        leadMs: START_LEAD_MS,
        soonMs: NEIGHBOUR_STALE_MS,
        farMs: NEIGHBOUR_STALE_FAR_MS,
      }));
  }

  /** What may be taken, of at most `limit` rows; asking again within a second may answer less. */
  reach(limit: number): StartReach {
    if (this.leavesMost) return { withinMs: NEIGHBOUR_WITHIN_MS, limit };
    if (!this.pressed && !this.isBusyNow()) return { withinMs: null, limit };
    return this.mayTrickle() ? { withinMs: null, limit: TRICKLE } : { withinMs: START_LEAD_MS, limit };
  }

  /** Notes that a batch was taken as far as `reach` allowed. */
  took({ withinMs }: StartReach): void {
    if (withinMs === null) this.trickledAtMs = monotonicMs();
  }

  /** How many starts go out at once, of `most`. Creates first: a start costs several times what a create costs. */
  publishers(most: number): number {
    return this.isBusyNow() ? BUSY_PUBLISHERS : most;
  }

  private isBusyNow(): boolean {
    return this.isBusy && monotonicMs() - this.nudgesSinceMs < BUSY_FOR_MS;
  }

  private mayTrickle(): boolean {
    return monotonicMs() - this.trickledAtMs >= TRICKLE_EVERY_MS;
  }
}
