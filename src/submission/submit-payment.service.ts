import { EVIDENCE_OF } from '../domain/provider-outcome.js';
import { isFinal, type PaymentState } from '../domain/payment-state.js';
import type { ArmedPayment, FinalState, SubmitPaymentAnswer } from '../../workflows/contract.js';
import { CLOSED_LANE_LOOK_MS } from '../lanes/lane-policy.js';
import { monotonicMs, pause } from '../platform/clock.js';
import type { ProviderResult } from '../providers/payment-provider.js';
import type { ArmedEntry, ArmedPayments } from './armed-payments.js';
import { notDue, type ArmingService } from './arming.service.js';
import { beforeDue, UnknownPayment } from './begin-submission.service.js';
import type { Claimer } from './claimer.js';
import type { CompletionPacer } from './completion-pacer.js';
import type { DatabaseClock } from './database-clock.js';
import type { DueGate } from './due-gate.js';
import type { DueTimer } from './due-timer.js';
import type { LaneCalls } from './lane-calls.js';
import type { Recorded } from './outcome.store.js';
import type { OutcomeRecorder } from './outcome-recorder.js';
import type { ProviderCall } from './provider-call.js';
import type { SubmissionEvents } from './submission-events.js';
import type { Claim, Standing } from './submission.store.js';

const LOOK_MS = 25;
const LOOK_LATE_MS = 250;
const LATE_MS = 1_000;
/** Proven not sent: waits of up to this long happen here, longer ones in the workflow. */
const RETRY_IN_MEMORY_MS = 10_000;
/** The lane has no token: the workflow waits this long before it asks again. */
const RETRY_BUSY_LANE_MS = 15_000;
/** Longest wait for somebody else's start; the armed activities end before their start-to-close. */
const LONGEST_WAIT_MS = 82_000;
/** Answers that the pacer may hold: nothing is decided in the workflow by them but the end. */
const isPaced = (answer: SubmitPaymentAnswer): boolean => answer.kind === 'stopped';

/** A lane that is closed may stay so for hours; the sweep wakes what waits for it when it lets calls pass. */
const laneRetryMs = (standing: Standing): number =>
  standing.lane_is_closed ? CLOSED_LANE_LOOK_MS : RETRY_BUSY_LANE_MS;

/** One provider call for a claimed attempt. */
export class SubmitPaymentService {
  constructor(
    private readonly clock: DatabaseClock,
    private readonly armed: ArmedPayments,
    private readonly arming: ArmingService,
    private readonly timer: DueTimer,
    private readonly gate: DueGate,
    private readonly claimer: Claimer,
    private readonly recorder: OutcomeRecorder,
    private readonly pacer: CompletionPacer,
    private readonly providerCall: ProviderCall,
    private readonly events: SubmissionEvents,
  ) {}

  /**
   * Waits for the recorded start, claims the open attempt, calls the provider once and records.
   * @returns stopped; outcome_open for submitted and unknown; review; retry with ms to wait; not_due,
   * held or lane_busy when the payment was not started after all.
   * @throws ArmedAborted, UnknownPayment, faults of storage: call again.
   * Twice: an attempt that is already claimed is never called again; the answer is what is proven.
   */
  async submitPayment(input: ArmedPayment): Promise<SubmitPaymentAnswer> {
    const entry = this.armed.enter(input, 'submit');
    let answer: SubmitPaymentAnswer;
    try {
      answer = await this.work(entry);
    } catch (error) {
      entry.submits--;
      this.pacer.quit(entry);
      throw error;
    }
    entry.submits--;
    if (answer.kind === 'stopped') this.armed.endAll(entry.paymentId, answer.state);
    if (isPaced(answer)) await this.pacer.leave(entry);
    else this.pacer.quit(entry);
    return answer;
  }

  private async work(entry: ArmedEntry): Promise<SubmitPaymentAnswer> {
    const loaded = await Promise.race([this.arming.load(entry), entry.aborted]);
    if (loaded.kind === 'missing') throw new UnknownPayment(entry.paymentId);
    const { instruction } = loaded;
    const early = beforeDue(instruction, entry.version);
    if (early && early.kind !== 'started') return early;
    const calls = this.gate.calls(entry.lane, instruction.lane_cap);
    if (!early) {
      const due = this.timer.due(instruction.due_at_ms);
      await Promise.race([due, entry.started, entry.over, entry.aborted]);
    }
    const since = monotonicMs();
    for (;;) {
      const told = await this.toldByBegin(entry);
      if (told) return told;
      const answer = await this.tryOnce(entry, instruction.provider, calls, since);
      if (answer) return answer;
      const late = this.clock.nowMs() - instruction.due_at_ms > LATE_MS;
      const ended = await Promise.race([pause(late ? LOOK_LATE_MS : LOOK_MS), entry.over, entry.aborted]);
      if (ended) return { kind: 'stopped', state: ended };
    }
  }

  /** While a begin of the same entry runs here, its word comes first. Null: go on. */
  private async toldByBegin(entry: ArmedEntry): Promise<SubmitPaymentAnswer | null> {
    while (entry.begins > 0) {
      const told = await Promise.race([
        entry.started,
        entry.over.then((state) => ({ kind: 'stopped', state }) as const),
        entry.aborted,
        pause(LOOK_LATE_MS),
      ]);
      if (told) return told.kind === 'started' ? null : told;
    }
    return null;
  }

  /** Claims and calls if there is something to claim, else reads where the payment stands. */
  private async tryOnce(
    entry: ArmedEntry,
    provider: string,
    calls: LaneCalls,
    since: number,
  ): Promise<SubmitPaymentAnswer | null> {
    // Two submits may share an entry: the reservation is one's, the other takes a call of its own.
    if (!entry.takeReserved()) {
      while (!calls.take()) await Promise.race([calls.nextFree(), pause(LOOK_LATE_MS), entry.aborted]);
    }
    let claim: Claim | null;
    let result: ProviderResult | null;
    try {
      claim = await this.claimer.claim(provider, entry.paymentId);
      result = claim && (await this.call(entry, claim));
    } finally {
      // The next call need not wait for this one's record.
      calls.free();
    }
    if (claim && result) {
      const recorded = await this.record(claim, result);
      // Two phases: what was just made is committed at once.
      if (recorded?.next === 'commit') return this.tryOnce(entry, provider, calls, since);
      if (recorded) return this.answerFor(recorded.state, recorded.waitMs);
    }
    const standing = await this.arming.standing(entry.paymentId);
    if (!standing) throw new UnknownPayment(entry.paymentId);
    return this.decide(entry, standing, since);
  }

  /** The one call under this claim. */
  private async call(entry: ArmedEntry, claim: Claim): Promise<ProviderResult> {
    const sinceClaim = monotonicMs();
    const couldGoAtMs = entry.grantedAtMs ?? sinceClaim;
    this.pacer.callStarted(sinceClaim - couldGoAtMs);
    this.events.callStarted(claim.latenessMs);
    entry.firing++;
    let result: ProviderResult;
    try {
      result = await this.providerCall.make(claim, sinceClaim);
    } finally {
      entry.firing--;
    }
    this.events.callEnded({
      provider: claim.provider,
      operation: claim.phase,
      evidence: EVIDENCE_OF[result.class],
      durationMs: monotonicMs() - sinceClaim,
    });
    return result;
  }

  /** Null when the answer came too late to count. */
  private async record(
    claim: Claim,
    result: ProviderResult,
  ): Promise<Extract<Recorded, { kind: 'recorded' }> | null> {
    const recorded = await this.recorder.record({
      paymentId: claim.paymentId,
      generation: claim.generation,
      no: claim.no,
      owner: claim.owner,
      capabilityClass: claim.capabilityClass,
      phase: claim.phase,
      result,
    });
    return recorded.kind === 'recorded' ? recorded : null;
  }

  private answerFor(state: PaymentState, waitMs: number): SubmitPaymentAnswer | null {
    if (isFinal(state)) return { kind: 'stopped', state: state as FinalState };
    if (state === 'submitted' || state === 'unknown') return { kind: 'outcome_open', state };
    if (state === 'needs_review') return { kind: 'review' };
    // Proven not sent: short waits happen here.
    return waitMs > RETRY_IN_MEMORY_MS ? { kind: 'retry', afterMs: Math.ceil(waitMs) } : null;
  }

  private async decide(
    entry: ArmedEntry,
    standing: Standing,
    since: number,
  ): Promise<SubmitPaymentAnswer | null> {
    const waited = monotonicMs() - since;
    if (standing.state === 'held') return { kind: 'held', version: standing.version };
    if (standing.state === 'scheduled') {
      if (standing.version !== entry.version) return notDue(standing);
      return waited > LONGEST_WAIT_MS
        ? { kind: 'lane_busy', version: standing.version, retryAfterMs: 2_000 }
        : null;
    }
    if (standing.state !== 'submitting') return this.answerFor(standing.state, 0);
    if (standing.open_no !== null) {
      if (standing.abandoned) await this.recorder.closeAbandoned(standing.id);
      // Unclaimed for long: its lane is paused, or its deadline passed; the sweep closes it.
      if (!standing.fenced && waited > LONGEST_WAIT_MS)
        return { kind: 'retry', afterMs: laneRetryMs(standing) };
      return null;
    }
    const waitMs = standing.next_action_in_ms ?? 0;
    if (waitMs > RETRY_IN_MEMORY_MS) return { kind: 'retry', afterMs: Math.ceil(waitMs) };
    if (waitMs > 0) {
      await Promise.race([pause(waitMs + 1), entry.over, entry.aborted]);
      return null;
    }
    if (await this.recorder.tryAgain(standing.lane, standing.id)) return null;
    return waited > RETRY_IN_MEMORY_MS ? { kind: 'retry', afterMs: laneRetryMs(standing) } : null;
  }
}
