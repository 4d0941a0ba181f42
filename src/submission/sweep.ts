import { isFinal } from '../domain/payment-state.js';
import { ARM_LEAD_MS } from '../outbox/arm-slots.js';
import { targetOf } from '../outbox/outbox-relay.js';
import type { WorkflowStarter } from '../outbox/workflow-starter.js';
import type { Database } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import { Repeating } from '../platform/repeating.js';
import { closeAbandoned } from './outcome.store.js';
import { readStandings } from './submission.store.js';
import { giveUpNotSent } from './resend.store.js';
import type { SubmissionEvents } from './submission-events.js';
import {
  closeUnclaimed,
  expirePayments,
  lockSweep,
  readSetting,
  republishOpen,
  takeOrphanedResults,
  takeOverdue,
  tidy,
  writeSetting,
  type SweepTarget,
} from './sweep.store.js';

const TICK_MS = 1_000;
/** Wakes a second, and wakes outstanding: more made recovery slower. */
const WAKES_PER_TICK = 100;
const WAKES_OUTSTANDING = 200;
const SIGNALLERS = 10;
/** Bound on full batches in one tick. */
const MAX_BATCHES = 20;
const BATCH = 200;
const NAMESPACE_SETTING = 'temporal_namespace_id';
const TIDY_EVERY_TICKS = 60;

interface Findings {
  readonly wake: readonly SweepTarget[];
  readonly wakeExisting: readonly string[];
}

/**
 * Finds what fell between two chairs: expires, closes abandoned attempts, wakes what nobody holds,
 * rebuilds what Temporal lost. A loop in every worker; one of them does the work at a time.
 */
export class Sweep {
  private readonly loop: Repeating;
  private ticks = 0;

  constructor(
    private readonly database: Database,
    private readonly starter: WorkflowStarter,
    private readonly events: SubmissionEvents,
    tickMs = TICK_MS,
  ) {
    this.loop = new Repeating({
      step: () => this.step(),
      everyMs: tickMs,
      onFault: (error) => events.fault('sweep', error),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  /**
   * Each part is tried even when another fails: a dead Temporal must not stop expiry, and each is a
   * transaction of its own, so that one part's fault does not undo another's work.
   */
  private async step(): Promise<undefined> {
    await this.guarded('sweep-expire', () => this.expire());
    await this.guarded('sweep', () => this.tick());
    await this.guarded('sweep-rebuild', () => this.rebuildAfterWipe());
  }

  private async guarded(operation: string, step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      this.events.fault(operation, error);
    }
  }

  private async expire(): Promise<void> {
    const expired = await this.database.transaction(async (tx) => {
      const moved: ('scheduled' | 'held')[] = [];
      if (!(await lockSweep(tx))) return moved;
      for (let i = 0; i < MAX_BATCHES; i++) {
        const batch = await expirePayments(tx);
        moved.push(...batch);
        if (batch.length < BATCH) break;
      }
      return moved;
    });
    for (const from of expired) this.events.moved({ from, to: 'expired', cause: 'expire' });
  }

  private async tick(): Promise<void> {
    this.ticks++;
    const found = await this.database.transaction(async (tx): Promise<Findings | null> => {
      if (!(await lockSweep(tx))) return null;
      let unknown = 0;
      for (let i = 0; i < MAX_BATCHES; i++) {
        const closed = await closeAbandoned(tx, null, 'sweep');
        unknown += closed.length;
        if (closed.length < BATCH) break;
      }
      // Due for inquiry at once: the loop that asks finds them, and its moves wake their runs.
      if (unknown > 0) {
        this.events.moved({ from: 'submitting', to: 'unknown', cause: 'record-outcome', count: unknown });
      }
      const unsent = await closeUnclaimed(tx);
      if (unsent.length > 0) {
        for (const [id, to] of await giveUpNotSent(tx, unsent, 'sweep')) {
          const isForPeople = to === 'needs_review';
          this.events.moved({ from: 'submitting', to, cause: isForPeople ? 'escalate' : 'record-outcome' });
          if (isForPeople) this.events.contradiction(id);
        }
      }
      const overdue = await takeOverdue(tx, WAKES_PER_TICK, WAKES_OUTSTANDING);
      if (this.ticks % TIDY_EVERY_TICKS === 1) await tidy(tx);
      return { wake: overdue, wakeExisting: await takeOrphanedResults(tx) };
    });
    // Signals go out after the commit: a slow orchestrator holds no lock.
    if (found) await this.wake(found);
  }

  private async wake(found: Findings): Promise<void> {
    const readAtMs = monotonicMs();
    const jobs = [
      ...found.wake.map((row) => () => this.wakeOne(row, readAtMs)),
      ...found.wakeExisting.map((id) => () => this.starter.wakeExisting(id)),
    ];
    if (jobs.length === 0) return;
    this.events.woken(jobs.length);
    let next = 0;
    const signaller = async (): Promise<void> => {
      for (let job = jobs[next++]; job; job = jobs[next++]) await job();
    };
    await Promise.all(Array.from({ length: SIGNALLERS }, signaller));
  }

  /** A payment that is not final but whose run completed gets a new run, and is counted. */
  private async wakeOne(row: SweepTarget, readAtMs: number): Promise<void> {
    const target = targetOf(row, -ARM_LEAD_MS, readAtMs);
    if ((await this.starter.wake(target, 'look')) === 'woken') return;
    // It may have become final since the sweep's look; then its run rightly completed.
    const [standing] = await readStandings(this.database, [row.payment_id]);
    if (!standing || isFinal(standing.state)) return;
    await this.starter.restart(target);
    this.events.restarted(1);
  }

  /**
   * Another namespace id: Temporal lost its data. Every open payment is published again. Two sweeps
   * may do it at once; a start that exists already is success.
   */
  private async rebuildAfterWipe(): Promise<void> {
    const id = await this.starter.namespaceId();
    const known = await readSetting(this.database, NAMESPACE_SETTING);
    if (known === id) return;
    if (known !== null) this.events.restarted(await republishOpen(this.database));
    await writeSetting(this.database, NAMESPACE_SETTING, id);
  }
}
