import { assertNever } from '../domain/assert.js';
import type { ArmedPayment, BeginSubmissionAnswer, FinalState } from '../../workflows/contract.js';
import type { Sql } from '../persistence/database.js';
import { move } from '../payments/gate.js';
import { pause } from '../platform/clock.js';
import type { ArmedEntry, ArmedPayments } from './armed-payments.js';
import { notDue, type ArmingService } from './arming.service.js';
import type { CompletionPacer } from './completion-pacer.js';
import type { DueGate, GateAnswer } from './due-gate.js';
import type { DueTimer } from './due-timer.js';
import type { SubmissionEvents } from './submission-events.js';
import type { Instruction, Standing } from './submission.store.js';
import type { WorkerLease } from './worker-lease.js';

/** Due later than this: the workflow waits, not this worker's memory. */
const FAR_MS = 130_000;
/** Bound on looking again at a payment that the gate refuses although it seems due. */
const MAX_LOOKS = 2_000;

export class UnknownPayment extends Error {
  constructor(paymentId: string) {
    super(`payment ${paymentId} does not exist here; nothing is sent. Was the database restored?`);
  }
}

/** What stands instead of a start, or null while the payment is scheduled at this version and near. */
export function beforeDue(instruction: Instruction, version: number): BeginSubmissionAnswer | null {
  if (instruction.state !== 'scheduled') return answerFor(instruction);
  if (instruction.version !== version || instruction.due_in_ms > FAR_MS) return notDue(instruction);
  return null;
}

/** The answer that a state gives to whoever wants the payment started. */
export function answerFor(of: Standing | Instruction): BeginSubmissionAnswer {
  switch (of.state) {
    case 'scheduled':
      return notDue(of);
    case 'held':
      return { kind: 'held', version: of.version };
    case 'submitting':
    case 'submitted':
    case 'unknown':
    case 'needs_review':
      return { kind: 'started' };
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'expired':
    case 'returned':
      return { kind: 'stopped', state: of.state };
    default:
      return assertNever(of.state);
  }
}

/** Records submission start (T7) at the due second: the point of no return for cancel. */
export class BeginSubmissionService {
  constructor(
    private readonly sql: Sql,
    private readonly lease: WorkerLease,
    private readonly armed: ArmedPayments,
    private readonly arming: ArmingService,
    private readonly timer: DueTimer,
    private readonly gate: DueGate,
    private readonly pacer: CompletionPacer,
    private readonly events: SubmissionEvents,
  ) {}

  /**
   * Waits in memory for the due time and its lane, then records submission start.
   * @returns started, also for every later state that is not final; not_due with the newest times;
   * held; lane_busy; stopped for a final state.
   * @throws ArmedAborted when this worker gives it up; UnknownPayment; faults of storage: call again.
   * Twice: finds `submitting` and answers started; never opens a second attempt.
   */
  async beginSubmission(input: ArmedPayment): Promise<BeginSubmissionAnswer> {
    const entry = this.armed.enter(input, 'begin');
    let answer: BeginSubmissionAnswer;
    try {
      answer = await this.work(entry);
    } catch (error) {
      entry.begins--;
      this.pacer.quit(entry);
      throw error;
    }
    entry.begins--;
    entry.tellStarted(answer);
    if (answer.kind === 'started' || answer.kind === 'stopped') await this.pacer.leave(entry);
    else this.pacer.quit(entry);
    return answer;
  }

  private async work(entry: ArmedEntry): Promise<BeginSubmissionAnswer> {
    const loaded = await Promise.race([this.arming.load(entry), entry.aborted]);
    if (loaded.kind === 'missing') throw new UnknownPayment(entry.paymentId);
    const { instruction, prepared, refusal } = loaded;
    const early = beforeDue(instruction, entry.version);
    if (early) return early;
    const over = entry.over.then((state: FinalState) => ({ kind: 'stopped', state }) as const);
    const due = this.timer.due(instruction.due_at_ms).then(() => null);
    const ended = await Promise.race([due, over, entry.aborted]);
    if (ended) return ended;
    if (prepared === null) return this.hold(instruction, refusal ?? 'prepare_failed');
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      const wait = this.gate.wait(entry, prepared, instruction.due_at_ms, instruction.lane_cap);
      const answer: GateAnswer | { kind: 'stopped'; state: FinalState } = await Promise.race([
        wait,
        over,
        entry.aborted,
      ]);
      if (answer.kind !== 'look') return answer;
      const standing = await this.arming.standing(entry.paymentId);
      if (!standing) throw new UnknownPayment(entry.paymentId);
      if (standing.state !== 'scheduled') {
        this.events.gateLost('begin-submission');
        return answerFor(standing);
      }
      if (standing.version !== entry.version) return notDue(standing);
      // The database says not yet: our estimate of its clock was ahead by a moment.
      if (standing.due_in_ms > 0) this.events.earlyRefusal();
      await pause(standing.due_in_ms > 0 ? 1 : 5);
    }
    throw new Error(
      `the gate refuses payment ${entry.paymentId} although it is due; look at its row and its lane`,
    );
  }

  /** A request that cannot be built holds the payment once it is due (T3); nothing was sent. */
  private async hold(instruction: Instruction, code: string): Promise<BeginSubmissionAnswer> {
    const result = await move(this.sql, {
      rule: 'T3',
      tenant: null,
      paymentId: instruction.id,
      cause: 'prepare_failed',
      actor: `worker:${this.lease.id}`,
      detail: { code },
      announce: null,
    });
    if (result.kind === 'moved') {
      this.events.moved({ from: result.from, to: result.to, cause: 'prepare_failed' });
      return { kind: 'held', version: result.version };
    }
    this.events.gateLost('prepare_failed');
    const standing = await this.arming.standing(instruction.id);
    if (!standing) throw new UnknownPayment(instruction.id);
    return answerFor(standing);
  }
}
