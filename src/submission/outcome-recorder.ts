import { compareLateAnswer } from '../payments/late-answer.js';
import type { Database } from '../persistence/database.js';
import { pause } from '../platform/clock.js';
import { Batcher } from './batcher.js';
import { recordCreates } from './create.store.js';
import {
  closeAbandoned,
  fileLateAnswer,
  recordOutcomes,
  type Outcome,
  type Recorded,
} from './outcome.store.js';
import { giveUpNotSent, retryNotSent } from './resend.store.js';
import type { SubmissionEvents } from './submission-events.js';
import type { WorkerLease } from './worker-lease.js';

/** A recording that failed is tried again this often before the sweep's judgement is left to stand. */
const RECORD_TRIES = 20;
const RECORD_AGAIN_MS = 500;

/** Writes what calls ended with, in batches, and opens or closes what follows. */
export class OutcomeRecorder {
  private readonly records: Batcher<Outcome, Recorded>;
  /** Two phases: what makes an object and moves nothing is recorded by rules of its own. */
  private readonly creates: Batcher<Outcome, Recorded>;
  private readonly abandoned: Batcher<string, boolean>;
  private readonly again: Batcher<{ readonly lane: string; readonly id: string }, boolean>;

  constructor(
    private readonly sql: Database,
    private readonly lease: WorkerLease,
    private readonly events: SubmissionEvents,
    ladderDivisor: number,
  ) {
    const limits = { maxBatch: 200, maxRunning: 2 };
    this.records = new Batcher((outcomes) => recordOutcomes(sql, outcomes, ladderDivisor), limits);
    this.creates = new Batcher((outcomes) => recordCreates(sql, outcomes), limits);
    this.abandoned = new Batcher(async (ids) => {
      const closed = new Set(await closeAbandoned(sql, ids, `worker:${lease.id}`));
      return ids.map((id) => closed.has(id));
    }, limits);
    this.again = new Batcher((asked) => this.tryBatch(asked), limits);
  }

  /**
   * Closes the attempt and moves the payment. Postgres may be away just now: the answer of the
   * provider is too precious to drop, so it is tried for a while.
   * @returns recorded, or late when somebody closed the attempt meanwhile; then it is filed.
   */
  async record(outcome: Outcome): Promise<Recorded> {
    for (let tries = 1; ; tries++) {
      try {
        const isCreate = outcome.capabilityClass === 'T' && outcome.phase === 'submit';
        const recorded = await (isCreate ? this.creates : this.records).add(outcome);
        if (recorded.kind === 'recorded') this.tellMoved(recorded, outcome);
        else await this.compareLate(outcome);
        return recorded;
      } catch (error) {
        if (tries >= RECORD_TRIES) throw error;
        this.events.fault('record-outcome', error);
        await pause(RECORD_AGAIN_MS);
      }
    }
  }

  /** An answer that came too late is filed; one that contradicts what the payment became is for people. */
  private async compareLate(outcome: Outcome): Promise<void> {
    const { paymentId, generation, result } = outcome;
    const { class: of, status, providerRef } = result;
    let isFiled = false;
    const verdict = await this.sql.transaction((tx) =>
      compareLateAnswer(
        tx,
        { paymentId, generation, class: of, status, providerRef, actor: `worker:${this.lease.id}` },
        async () => (isFiled = await fileLateAnswer(tx, outcome)),
      ),
    );
    const from = verdict.escalatedFrom;
    if (from !== null) this.events.moved({ from, to: 'needs_review', cause: 'escalate' });
    if (verdict.caseOpened) this.events.contradiction(paymentId);
    if (isFiled) this.events.lateAnswer(paymentId);
  }

  /** Closes this payment's attempt as ambiguous if its owner is gone (T13). */
  async closeAbandoned(paymentId: string): Promise<void> {
    if (await this.abandoned.add(paymentId)) {
      this.events.moved({ from: 'submitting', to: 'unknown', cause: 'record-outcome' });
    }
  }

  /** T11 or T12 for a payment whose attempts were all proven not sent. @returns true when it moved. */
  tryAgain(lane: string, id: string): Promise<boolean> {
    return this.again.add({ lane, id });
  }

  private tellMoved(recorded: Extract<Recorded, { kind: 'recorded' }>, outcome: Outcome): void {
    if (!recorded.sent) return;
    const cause =
      recorded.next === 'commit'
        ? 'resend'
        : recorded.state === 'needs_review'
          ? 'escalate'
          : 'record-outcome';
    this.events.moved({ from: 'submitting', to: recorded.state, cause });
    if (recorded.state === 'needs_review') this.events.contradiction(outcome.paymentId);
  }

  private async tryBatch(
    asked: readonly { readonly lane: string; readonly id: string }[],
  ): Promise<readonly boolean[]> {
    const ids = asked.map((a) => a.id);
    const ended = await giveUpNotSent(this.sql, ids, `worker:${this.lease.id}`);
    for (const [id, to] of ended) {
      this.events.moved({
        from: 'submitting',
        to,
        cause: to === 'needs_review' ? 'escalate' : 'record-outcome',
      });
      if (to === 'needs_review') this.events.contradiction(id);
    }
    const moved = new Set(ended.keys());
    const lanes = new Set(asked.map((a) => a.lane));
    for (const lane of lanes) {
      const mine = asked.filter((a) => a.lane === lane && !moved.has(a.id)).map((a) => a.id);
      if (mine.length === 0) continue;
      const opened = await retryNotSent(this.sql, lane, this.lease.id, mine);
      if (opened.size > 0)
        this.events.moved({ from: 'submitting', to: 'submitting', cause: 'resend', count: opened.size });
      for (const id of opened) moved.add(id);
    }
    return ids.map((id) => moved.has(id));
  }
}
