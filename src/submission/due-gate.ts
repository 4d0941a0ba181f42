import type { LaneBusy } from '../../workflows/contract.js';
import type { Sql } from '../persistence/database.js';
import { CLOSED_LANE_LOOK_MS } from '../lanes/lane-policy.js';
import { monotonicMs, pause } from '../platform/clock.js';
import type { ArmedEntry } from './armed-payments.js';
import {
  beginSubmissions,
  estimateWaits,
  markArmed,
  releaseArmed,
  type Prepared,
} from './begin-submission.store.js';
import type { DatabaseClock } from './database-clock.js';
import { LaneCalls } from './lane-calls.js';
import { isStorageFault } from './storage-fault.js';
import type { WorkerLease } from './worker-lease.js';

/** Payments in one statement. */
const MAX_BATCH = 200;
/** While tokens are short, at most one statement in this time. */
const SHORT_OF_TOKENS_MS = 100;
const CLOSED_LANE_MS = 250;
/** A lane that waits may be opened by another worker's probe before its time: it is asked again after this. */
const WAITING_LANE_MS = 1_000;
/** At the cap calls come free one by one: a moment later a statement starts many instead of one. */
const GATHER_CALLS = 50;
const GATHER_MS = 10;
const ESTIMATE_EVERY_MS = 500;
/** Who waits longer than this is marked, so that the sweep leaves it alone. */
const MARK_AFTER_MS = 900;
/** A payment waits in memory for its lane this long, a little longer when its turn is near. */
const MEMORY_WAIT_MS = 60_000;
const MEMORY_WAIT_NEAR_MS = 70_000;
const NEAR_TURN_MS = 5_000;
const LEAD_MS = 3_000;
const SHORTEST_BUSY_MS = 500;

/** started: T7 happened. look: the row is not as expected, read it. */
export type GateAnswer = { readonly kind: 'started' } | { readonly kind: 'look' } | LaneBusy;

interface Waiter {
  readonly entry: ArmedEntry;
  readonly prepared: Prepared;
  readonly dueAtMs: number;
  readonly sinceMs: number;
  markedFor: string | null;
  readonly resolve: (answer: GateAnswer) => void;
  readonly reject: (reason: unknown) => void;
}

interface Lane {
  readonly calls: LaneCalls;
  waiters: Waiter[];
  sorted: boolean;
  nextAtMs: number;
  nextEstimateAtMs: number;
  closed: boolean;
  /** It admits single probes at most: the provider has had enough, or its breaker is open. */
  waiting: boolean;
  gathered: boolean;
  pumping: boolean;
}

/**
 * Holds the due payments of this worker and moves them in batches (T7), oldest execute_at first,
 * no more than the lane has tokens and this worker free calls; the others stay `scheduled`, so
 * that they can still be cancelled.
 */
export class DueGate {
  private readonly lanes = new Map<string, Lane>();
  batches = 0;

  constructor(
    private readonly sql: Sql,
    private readonly lease: WorkerLease,
    private readonly clock: DatabaseClock,
    /** Told how many payments each statement started. */
    private readonly onStarted: (count: number) => void,
  ) {}

  /** The calls of a lane; the first caller's cap makes it. */
  calls(lane: string, cap: number): LaneCalls {
    const calls = this.lane(lane, cap).calls;
    calls.cap = cap;
    return calls;
  }

  /** True while some lane has waiters, tokens and free calls: work that must not wait for paperwork. */
  isBusy(): boolean {
    const now = monotonicMs();
    for (const lane of this.lanes.values()) {
      if (lane.waiters.length > 0 && !lane.closed && lane.nextAtMs <= now && lane.calls.available > 0)
        return true;
    }
    return false;
  }

  get waiting(): number {
    let n = 0;
    for (const lane of this.lanes.values()) n += lane.waiters.length;
    return n;
  }

  /** Waits until this due payment was started, or until there is something to tell the workflow. */
  wait(entry: ArmedEntry, prepared: Prepared, dueAtMs: number, cap: number): Promise<GateAnswer> {
    const lane = this.lane(entry.lane, cap);
    return new Promise((resolve, reject) => {
      lane.waiters.push({
        entry,
        prepared,
        dueAtMs,
        sinceMs: monotonicMs(),
        markedFor: null,
        resolve,
        reject,
      });
      lane.sorted = false;
      void this.pump(lane);
    });
  }

  /** Drops waiters whose entry was given up. */
  drop(gone: (entry: ArmedEntry) => boolean): void {
    for (const lane of this.lanes.values()) lane.waiters = lane.waiters.filter((w) => !gone(w.entry));
  }

  private lane(name: string, cap: number): Lane {
    let lane = this.lanes.get(name);
    if (!lane) {
      lane = {
        calls: new LaneCalls(name, cap),
        waiters: [],
        sorted: true,
        nextAtMs: 0,
        nextEstimateAtMs: 0,
        closed: false,
        waiting: false,
        gathered: false,
        pumping: false,
      };
      this.lanes.set(name, lane);
    }
    return lane;
  }

  private async pump(lane: Lane): Promise<void> {
    if (lane.pumping) return;
    lane.pumping = true;
    // One turn of the event loop, so that payments of the same instant share a statement.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      while (lane.waiters.length > 0) await this.step(lane);
    } catch (error) {
      for (const waiter of lane.waiters.splice(0)) waiter.reject(error);
    } finally {
      lane.pumping = false;
    }
  }

  private async step(lane: Lane): Promise<void> {
    const now = monotonicMs();
    if (now >= lane.nextEstimateAtMs) {
      lane.nextEstimateAtMs = now + ESTIMATE_EVERY_MS;
      await this.sendBack(lane);
      if (lane.waiters.length === 0) return;
    }
    if (!this.clock.agrees()) return pause(CLOSED_LANE_MS);
    const waitMs = Math.min(CLOSED_LANE_MS, lane.nextAtMs - monotonicMs());
    if (waitMs > 0) return pause(waitMs);
    if (lane.calls.available === 0) {
      await Promise.race([lane.calls.nextFree(), pause(CLOSED_LANE_MS)]);
      return;
    }
    if (lane.calls.available < Math.min(lane.waiters.length, GATHER_CALLS) && !lane.gathered) {
      lane.gathered = true;
      return pause(GATHER_MS);
    }
    lane.gathered = false;
    if (!lane.sorted) {
      lane.waiters.sort(
        (a, b) => a.dueAtMs - b.dueAtMs || (a.prepared.paymentId < b.prepared.paymentId ? -1 : 1),
      );
      lane.sorted = true;
    }
    await this.beginApart(lane, lane.waiters.slice(0, MAX_BATCH));
  }

  /** One payment that Postgres refuses undoes its whole batch: halves find it, and delay nobody else. */
  private async beginApart(lane: Lane, picked: readonly Waiter[]): Promise<void> {
    try {
      await this.begin(lane, picked);
    } catch (error) {
      if (isStorageFault(error)) throw error;
      const first = picked[0]?.prepared.paymentId;
      if (picked.every((w) => w.prepared.paymentId === first)) {
        lane.waiters = lane.waiters.filter((w) => !picked.includes(w));
        for (const waiter of picked) waiter.reject(error);
        return;
      }
      // Sorted by payment within one instant: those of one payment may part, which harms nobody.
      const half = Math.ceil(picked.length / 2);
      await this.beginApart(lane, picked.slice(0, half));
      await this.beginApart(lane, picked.slice(half));
    }
  }

  private async begin(lane: Lane, picked: readonly Waiter[]): Promise<void> {
    this.batches++;
    const free = lane.calls.available;
    // A wake while armed arms a second pair: one payment may wait here twice, and is begun once.
    const wanted = new Map(picked.map((w) => [w.prepared.paymentId, w.prepared]));
    const owner = this.lease.id;
    const result = await beginSubmissions(this.sql, lane.calls.lane, owner, free, [...wanted.values()]);
    // A lease that is over lets nothing pass either, and comes back with its renewal: no reason for payments
    // to wait as they do for people.
    lane.closed = result.kind === 'closed' && this.lease.isHeldBy(owner);
    lane.waiting = result.kind === 'waiting';
    if (result.kind === 'closed') {
      lane.nextAtMs = monotonicMs() + CLOSED_LANE_MS;
      return;
    }
    if (result.kind === 'waiting') {
      lane.nextAtMs = monotonicMs() + Math.min(WAITING_LANE_MS, Math.max(SHORT_OF_TOKENS_MS, result.waitMs));
      return;
    }
    this.onStarted(result.moved.size);
    const limit = Math.min(Math.floor(result.available), free);
    // Fewer than could be taken: what is left over cannot be taken as it is, somebody must read it.
    const restIsOdd = result.moved.size < Math.min(limit, wanted.size);
    const done = new Set<Waiter>();
    for (const waiter of picked) {
      if (result.moved.has(waiter.prepared.paymentId)) {
        this.grant(lane, waiter);
        done.add(waiter);
      } else if (restIsOdd) {
        waiter.resolve({ kind: 'look' });
        done.add(waiter);
      }
    }
    lane.waiters = lane.waiters.filter((w) => !done.has(w));
    const left = result.available - result.moved.size;
    if (left < 1)
      lane.nextAtMs = monotonicMs() + Math.max(SHORT_OF_TOKENS_MS, ((1 - left) / result.rate) * 1000);
  }

  /** The call is reserved before the submit asks for it, so a burst never exceeds the cap. */
  private grant(lane: Lane, waiter: Waiter): void {
    const { entry } = waiter;
    if (entry.submits > 0 && entry.reserved === null && lane.calls.take()) entry.reserved = lane.calls;
    entry.grantedAtMs = monotonicMs();
    waiter.resolve({ kind: 'started' });
  }

  /** Marks who waits, and sends back to the workflow who will wait longer than memory is for. */
  private async sendBack(lane: Lane): Promise<void> {
    const now = monotonicMs();
    const owner = this.lease.id;
    const unmarked = lane.waiters.filter((w) => w.markedFor !== owner && now - w.sinceMs > MARK_AFTER_MS);
    if (unmarked.length > 0) {
      const marked = await markArmed(this.sql, unmarked.map((w) => w.prepared.paymentId), owner); // prettier-ignore
      for (const waiter of unmarked) if (marked.has(waiter.prepared.paymentId)) waiter.markedFor = owner;
    }
    const long = lane.waiters.filter((w) => now - w.sinceMs > (lane.closed ? MARK_AFTER_MS : MEMORY_WAIT_MS));
    if (long.length === 0) return;
    const waits = await estimateWaits(this.sql, lane.calls.lane, long.map((w) => w.prepared.paymentId)); // prettier-ignore
    const busy: { waiter: Waiter; answer: LaneBusy }[] = [];
    const done = new Set<Waiter>();
    for (const waiter of long) {
      const estimate = waits.get(waiter.prepared.paymentId);
      if (!estimate) {
        waiter.resolve({ kind: 'look' });
        done.add(waiter);
      } else if (
        lane.closed ||
        estimate.waitMs > NEAR_TURN_MS ||
        now - waiter.sinceMs > MEMORY_WAIT_NEAR_MS
      ) {
        const isShut = lane.closed || lane.waiting;
        const retryAfterMs = Math.max(
          isShut ? CLOSED_LANE_LOOK_MS : SHORTEST_BUSY_MS,
          estimate.waitMs - LEAD_MS,
        );
        busy.push({ waiter, answer: { kind: 'lane_busy', version: estimate.version, retryAfterMs } });
      }
    }
    if (busy.length > 0) {
      // Nobody knows when a closed lane opens: the sweep may wake its payments as soon as it does.
      await releaseArmed(this.sql, busy.map(({ waiter, answer }) => ({
        paymentId: waiter.prepared.paymentId,
        restMs: lane.closed || lane.waiting ? 0 : answer.retryAfterMs,
      }))); // prettier-ignore
      for (const { waiter, answer } of busy) {
        waiter.resolve(answer);
        done.add(waiter);
      }
    }
    lane.waiters = lane.waiters.filter((w) => !done.has(w));
  }
}
