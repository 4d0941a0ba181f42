import { isFinal } from '../domain/payment-state.js';
import type { Sql } from '../persistence/database.js';
import { monotonicMs, pause } from '../platform/clock.js';
import { ARM_LEAD_MS, armOffsetMs } from './arm-slots.js';
import {
  deleteOutbox,
  giveBackOutbox,
  pendingKinds,
  planWakeAfter,
  takeOutbox,
  takeSlots,
  type OutboxKind,
  type OutboxRow,
} from './outbox.store.js';
import type { OutboxNudge } from './outbox-nudge.js';
import { StartPace, type StartPaceOptions } from './start-pace.js';
import type { WorkflowStarter, WorkflowTarget } from './workflow-starter.js';

const BATCH = 100;
const PUBLISHERS = 25;
const POLL_MS = 250;
const NUDGE_MS = 10;
const BACK_OFF_FIRST_MS = 500;
const BACK_OFF_LONGEST_MS = 5_000;
/** The sweep counts a payment of a slow lane as missing this long after its arm time. */
const WAKE_AFTER_ARM_MS = 5_000;

export interface RelayEvents {
  published(kind: OutboxKind, count: number): void;
  fault(operation: string, error: unknown): void;
}

/**
 * Publishes what a commit left in the outbox: starts, wakes and cancels workflows, at least once.
 * Each kind is taken apart, so that none queues behind another. Take, slots, publish and delete are
 * short steps of their own; the orchestrator is called outside any transaction.
 */
export class OutboxRelay implements OutboxNudge {
  private stopped = false;
  private readonly running = new Map<OutboxKind, Promise<void>>();
  private wakePoll: () => void = () => undefined;
  private readonly stopping: Promise<void>;
  private tellStopping: () => void = () => undefined;
  private loop: Promise<void> | null = null;
  private readonly pace: StartPace;

  constructor(
    private readonly sql: Sql,
    private readonly starter: WorkflowStarter,
    private readonly events: RelayEvents,
    options: StartPaceOptions = { hasNeighbour: false },
  ) {
    this.pace = new StartPace(sql, options);
    this.stopping = new Promise((resolve) => (this.tellStopping = resolve));
  }

  /** Begins to poll. Twice: nothing. */
  start(): void {
    this.loop ??= this.poll();
  }

  /** A commit just left something: do not wait for the next poll. */
  nudge(): void {
    this.pace.nudge();
    this.wakePoll();
  }

  /** Takes nothing new and waits for what is under way. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.tellStopping();
    await this.loop;
    await Promise.all(this.running.values());
  }

  private async poll(): Promise<void> {
    while (!this.stopped) {
      try {
        await this.pace.look();
        const { withinMs } = this.pace.reach(BATCH);
        for (const kind of await pendingKinds(this.sql, withinMs)) this.drain(kind);
      } catch (error) {
        this.events.fault('outbox-poll', error);
      }
      // Creates come in hundreds a second: one look serves all nudges of a moment.
      await Promise.race([pause(NUDGE_MS), this.stopping]);
      const nudged = new Promise<void>((resolve) => (this.wakePoll = resolve));
      await Promise.race([pause(POLL_MS), nudged, this.stopping]);
    }
  }

  /** Publishes this kind until there is nothing left; one at a time. */
  private drain(kind: OutboxKind): void {
    if (this.running.has(kind)) return;
    const done = this.drainAll(kind).finally(() => this.running.delete(kind));
    this.running.set(kind, done);
  }

  private async drainAll(kind: OutboxKind): Promise<void> {
    let backOffMs = BACK_OFF_FIRST_MS;
    while (!this.stopped) {
      try {
        const taken = await this.batch(kind);
        backOffMs = BACK_OFF_FIRST_MS;
        if (taken === 0) return;
      } catch (error) {
        this.events.fault(`outbox-${kind}`, error);
        await Promise.race([pause(backOffMs), this.stopping]);
        backOffMs = Math.min(BACK_OFF_LONGEST_MS, backOffMs * 2);
      }
    }
  }

  /** @returns how many were taken. @throws the first fault of publishing; the rest is given back. */
  private async batch(kind: OutboxKind): Promise<number> {
    const reach = kind === 'start' ? this.pace.reach(BATCH) : { withinMs: null, limit: BATCH };
    const rows = await takeOutbox(this.sql, kind, reach.limit, reach.withinMs);
    if (kind === 'start') this.pace.took(reach);
    if (rows.length === 0) return 0;
    const readAtMs = monotonicMs();
    const targets = await this.targets(kind, rows, readAtMs);
    const done: bigint[] = [];
    let fault: unknown = null;
    let next = 0;
    const publisher = async (n: number): Promise<void> => {
      // The first fault ends the batch: a dead orchestrator is not asked a hundred times.
      while (next < rows.length && fault === null) {
        if (kind === 'start' && n >= this.pace.publishers(PUBLISHERS)) return;
        const i = next++;
        const row = rows[i];
        const target = targets[i];
        if (!row || !target) continue;
        try {
          await this.publish(kind, row, target);
          done.push(row.id);
        } catch (error) {
          fault ??= error;
        }
      }
    };
    await Promise.all(Array.from({ length: PUBLISHERS }, (_, n) => publisher(n)));
    if (done.length > 0) await deleteOutbox(this.sql, done);
    this.events.published(kind, done.length);
    if (fault !== null) {
      const published = new Set(done);
      await giveBackOutbox(
        this.sql,
        rows.map((r) => r.id).filter((id) => !published.has(id)),
      );
      throw fault as Error;
    }
    return rows.length;
  }

  /** Takes slots for what is to be armed later, and says when. */
  private async targets(
    kind: OutboxKind,
    rows: readonly OutboxRow[],
    readAtMs: number,
  ): Promise<readonly WorkflowTarget[]> {
    const timed = kind === 'cancel' ? [] : rows.filter((r) => r.state === 'scheduled');
    const slots = timed.length > 0 ? await takeSlots(this.sql, timed) : [];
    const offsets = new Map(timed.map((row, i) => [row.id, armOffsetMs(slots[i] ?? 0, row.rate)]));
    const late = timed.filter((r) => (offsets.get(r.id) ?? 0) > -ARM_LEAD_MS);
    if (late.length > 0) {
      const inMs = (r: OutboxRow): number => r.due_in_ms + (offsets.get(r.id) ?? 0) + WAKE_AFTER_ARM_MS;
      await planWakeAfter(this.sql, late.map((r) => ({ paymentId: r.payment_id, inMs: inMs(r) }))); // prettier-ignore
    }
    return rows.map((row) => targetOf(row, offsets.get(row.id) ?? -ARM_LEAD_MS, readAtMs));
  }

  private async publish(kind: OutboxKind, row: OutboxRow, target: WorkflowTarget): Promise<void> {
    switch (kind) {
      case 'start':
        // Cancelled before it was ever started: there is nothing to run.
        return isFinal(row.state) ? undefined : this.starter.start(target);
      case 'cancel':
        return this.starter.cancel(target);
      case 'wake':
        // Completed runs are the sweep's to judge.
        await this.starter.wake(target, row.state === 'scheduled' ? 'times' : 'look');
    }
  }
}

/** The target of a row, armed `offsetMs` after its due time. */
export function targetOf(row: Omit<OutboxRow, 'id'>, offsetMs: number, readAtMs: number): WorkflowTarget {
  return {
    paymentId: row.payment_id,
    lane: row.lane,
    provider: row.provider,
    tenantPseudonym: row.pseudonym,
    version: row.version,
    dueInMs: row.due_in_ms,
    armInMs: row.due_in_ms + offsetMs,
    readAtMs,
  };
}
