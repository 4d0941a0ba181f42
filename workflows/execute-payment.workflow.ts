import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  makeContinueAsNewFunc,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { armed, INQUIRE, SHORT } from './activity-policies.js';
import {
  CANCEL_SIGNAL,
  WAKE_SIGNAL,
  type ArmedPayment,
  type ArmHint,
  type BeginSubmissionAnswer,
  type ExecutePaymentInput,
  type FinalState,
  type InquireAnswer,
  type LookAnswer,
  type PaymentActivities,
  type SubmitPaymentAnswer,
  type WaitsFor,
  type WakeNews,
} from './contract.js';

export const cancelSignal = defineSignal(CANCEL_SIGNAL);
export const wakeSignal = defineSignal<[WakeNews?]>(WAKE_SIGNAL);

const short = proxyActivities<PaymentActivities>(SHORT);
const patient = proxyActivities<PaymentActivities>(INQUIRE);

/** An arm time this near counts as now: arming has no effect that anyone can see, a timer costs events. */
const NEAR_MS = 1_000;

/** A run that left the workers' memory looks at its row at least this often, whatever became of its wake. */
const OUTSIDE_MS = 24 * 3_600_000;

/** Shown as current details of a run in a worker's memory, and in the memo of one that left it. */
const WAITS_FOR: Readonly<Record<WaitsFor, string>> = Object.freeze({
  submitted: 'Submitted: the workers ask the provider for the outcome',
  unknown: 'Unknown: the workers ask the provider what became of it',
  review: 'Needs review: two people decide',
});

type Answer = SubmitPaymentAnswer | InquireAnswer | Exclude<BeginSubmissionAnswer, { kind: 'started' }>;

/**
 * One payment: it sleeps until shortly before its time, hears cancel and wake, arms the pair that
 * records submission start and calls the provider, and waits outside the workers' memory while the outcome is open. It
 * decides nothing about money: every answer comes from the database's gate.
 * @returns the final state of the payment. Twice under one payment: the gate admits one of them.
 */
export async function executePayment(input: ExecutePaymentInput): Promise<FinalState> {
  const story = new PaymentStory(input);
  setHandler(cancelSignal, () => story.cancel());
  setHandler(wakeSignal, (news) => story.wake(news));
  // Cancel in the Web UI asks the gate like the signal; it never aborts a call.
  CancellationScope.current().cancelRequested.catch(() => story.cancel());
  return CancellationScope.nonCancellable(() => story.tell());
}

/** One loop, one wait, three inputs: answers of activities, the cancel flag, the newest hint. */
class PaymentStory {
  private readonly paymentId: string;
  private readonly lane: string;
  private version: number;
  private dueAt: number;
  private armAt: number;
  private readonly answers: { readonly answer: Answer; readonly armedAt: number }[] = [];
  /** Counts inputs, so that a wait ends when one came. */
  private inputs = 0;
  private cancelAsked = false;
  private bareWake = false;
  private inquiryAsked = false;
  private hint: (ArmHint & { readonly heardAt: number }) | null = null;
  private wantsArming = true;
  private submitOnly = false;
  private inquiring = false;
  /** Armed activities under way, of any pair. */
  private underWay = 0;
  /** Held, in review or with an open outcome: only a wake goes on. */
  private parked = false;
  /** The run may leave the workers' memory: nothing happens in it until somebody wakes it. */
  private leavesFor: WaitsFor | null = null;
  /** The run left once and was woken. */
  private readonly cameBack: boolean;

  constructor(input: ExecutePaymentInput) {
    this.paymentId = input.paymentId;
    this.lane = input.lane;
    this.version = input.version;
    this.cameBack = input.waitsFor !== undefined;
    if (this.cameBack) {
      this.wantsArming = false;
      this.parked = true;
      this.bareWake = true;
    }
    // Durations were measured when the start was asked for, whatever the start delay did since.
    const askedAt = workflowInfo().startTime.getTime();
    this.dueAt = askedAt + input.dueInMs;
    this.armAt = askedAt + input.armInMs;
  }

  cancel(): void {
    this.cancelAsked = true;
    this.inputs++;
  }

  /**
   * Of new times only a newer version says something, so repeats and late ones cost nothing; an empty
   * wake means "look"; `inquire` spares the pair that would only find out that the outcome is open.
   */
  wake(news: WakeNews | undefined): void {
    if (!news) this.bareWake = true;
    else if (news === 'inquire') this.inquiryAsked = true;
    else if (news.version > Math.max(this.version, this.hint?.version ?? 0)) {
      this.hint = { ...news, heardAt: Date.now() };
    } else return;
    this.inputs++;
  }

  async tell(): Promise<FinalState> {
    setCurrentDetails('Scheduled: waits for its time');
    let end: FinalState | null = null;
    while (end === null) end = await this.step();
    setCurrentDetails(`Final: ${end}`);
    return end;
  }

  /** Handles what came, then arms, waits or ends. @returns the final state, or null to go on. */
  private async step(): Promise<FinalState | null> {
    const seen = this.inputs;
    for (let next = this.answers.shift(); next; next = this.answers.shift()) {
      const end = this.isStale(next.answer, next.armedAt) ? null : this.take(next.answer);
      if (end) return end;
    }
    if (this.cancelAsked) {
      this.cancelAsked = false;
      const answer = await short.cancelPayment({ paymentId: this.paymentId });
      return answer.kind === 'stopped' ? answer.state : null;
    }
    if (this.hint) {
      const newest = this.hint;
      this.hint = null;
      if (newest.version > this.version) this.follow(newest, newest.heardAt);
    }
    if (this.inquiryAsked) {
      this.inquiryAsked = false;
      const end = this.take({ kind: 'inquire' });
      if (end || this.inputs !== seen) return end;
    }
    if (this.bareWake) {
      this.bareWake = false;
      const end = await this.heed();
      if (end || this.inputs !== seen) return end;
    }
    const waitMs = this.armAt - Date.now();
    if (this.wantsArming && waitMs <= NEAR_MS) {
      this.arm();
      return null;
    }
    if (this.wantsArming && this.underWay === 0 && !this.inquiring && workflowInfo().continueAsNewSuggested) {
      await this.startAfresh(waitMs);
    }
    const mayLeave = (): boolean => this.leavesFor !== null && this.underWay === 0 && !this.inquiring;
    if (this.leavesFor !== null && mayLeave()) await this.leave(this.leavesFor);
    const somethingCame = (): boolean => this.inputs !== seen || mayLeave();
    if (this.wantsArming) await condition(somethingCame, waitMs);
    else await condition(somethingCame);
    return null;
  }

  /**
   * A pair of an older version knows nothing of the version that was followed since: its word would
   * double the newer pair, or undo the wait for it. A pair of this version is believed whatever
   * version it read, even a lower one: that row was restored from a backup.
   */
  private isStale(answer: Answer, armedAt: number): boolean {
    return 'version' in answer && armedAt < this.version && answer.version <= this.version;
  }

  /** @returns the final state when the answer is the end. */
  private take(answer: Answer): FinalState | null {
    switch (answer.kind) {
      case 'stopped':
        return answer.state;
      case 'not_due':
        this.follow(answer);
        return null;
      case 'lane_busy':
        this.armLater(answer.retryAfterMs, false);
        return null;
      case 'held':
        this.park('Held: waits for a release');
        return null;
      case 'retry':
        this.armLater(answer.afterMs, true);
        return null;
      case 'resend':
        this.armLater(0, true);
        return null;
      case 'outcome_open':
        this.park(WAITS_FOR[answer.state]);
        this.leavesFor = answer.state;
        return null;
      case 'inquire':
        this.wantsArming = false;
        this.inquire();
        return null;
      case 'review':
        this.park(WAITS_FOR.review);
        if (this.cameBack) this.leavesFor = 'review';
        return null;
    }
  }

  /**
   * A payment whose outcome is open may wait for days, and thousands may do so at once: in a worker's
   * memory each would take a fifth of a megabyte. The next run begins with its wake, or looks when its
   * time is over; until then it is a row of the server.
   */
  private async leave(waitsFor: WaitsFor): Promise<never> {
    const { paymentId, lane, version } = this;
    const dueInMs = this.dueAt - Date.now();
    const next = makeContinueAsNewFunc<typeof executePayment>({
      backoffStartInterval: OUTSIDE_MS,
      memo: { waits_for: WAITS_FOR[waitsFor] },
    });
    return next({ paymentId, lane, version, dueInMs, armInMs: dueInMs, waitsFor });
  }

  /**
   * A payment that its lane refuses for hours arms again and again. Before its history reaches the
   * server's limit, which would terminate the run, a new run goes on with the same wait; a retry arms
   * both activities there, and beginSubmission answers that submission has started.
   */
  private async startAfresh(armInMs: number): Promise<never> {
    const { paymentId, lane, version } = this;
    const dueInMs = this.dueAt - Date.now();
    return continueAsNew<typeof executePayment>({ paymentId, lane, version, dueInMs, armInMs });
  }

  /** Durations count from when they were heard, however long an activity was waited for since. */
  private follow(hint: ArmHint, heardAt = Date.now()): void {
    setCurrentDetails('Scheduled: waits for its time');
    this.version = hint.version;
    this.dueAt = heardAt + hint.dueInMs;
    this.armAt = heardAt + hint.armInMs;
    this.wantsArming = true;
    this.submitOnly = false;
    this.parked = false;
    this.leavesFor = null;
  }

  private armLater(afterMs: number, submitOnly: boolean): void {
    setCurrentDetails(submitOnly ? 'Submitting: tries again' : 'Scheduled: waits for its lane');
    this.armAt = Date.now() + afterMs;
    this.wantsArming = true;
    this.submitOnly = submitOnly;
    this.parked = false;
    this.leavesFor = null;
  }

  private park(details: string): void {
    setCurrentDetails(details);
    this.wantsArming = false;
    this.parked = true;
  }

  /** Both activities at once; submitPayment's answer decides, beginSubmission's only when it is not `started`. */
  private arm(): void {
    this.wantsArming = false;
    setCurrentDetails(
      this.submitOnly ? 'Submitting: tries again' : 'Armed: waits in a worker for its second',
    );
    const pair = proxyActivities<PaymentActivities>(armed(this.dueAt - Date.now()));
    const payment: ArmedPayment = { paymentId: this.paymentId, lane: this.lane, version: this.version };
    let settled = false;
    const settle = (answer: Answer): void => {
      // The second word of a pair counts only when it is the last word on the payment.
      if (settled && answer.kind !== 'stopped') return;
      settled = true;
      this.push(answer, payment.version);
    };
    if (!this.submitOnly) {
      this.underWay++;
      void pair.beginSubmission(payment).then((answer) => {
        this.underWay--;
        if (answer.kind !== 'started') settle(answer);
      });
    }
    this.submitOnly = false;
    this.underWay++;
    void pair.submitPayment(payment).then((answer) => {
      this.underWay--;
      settle(answer);
    });
  }

  private inquire(): void {
    if (this.inquiring) return;
    this.inquiring = true;
    setCurrentDetails('Submitted or unknown: asks the provider');
    void patient.inquire({ paymentId: this.paymentId }).then((answer) => {
      this.inquiring = false;
      this.push(answer, this.version);
    });
  }

  /** @param armedAt the version that the activity was given; any other activity reads what is. */
  private push(answer: Answer, armedAt: number): void {
    this.answers.push({ answer, armedAt });
    this.inputs++;
  }

  /**
   * A wake without news. Past its time the payment is armed at once: whoever held it may be gone,
   * and a pair too many finds nothing to do. Otherwise the row is read.
   */
  private async heed(): Promise<FinalState | null> {
    if (!this.inquiring && !this.parked && this.dueAt <= Date.now() + NEAR_MS) {
      this.armLater(0, false);
      return null;
    }
    const found: LookAnswer = await short.look({ paymentId: this.paymentId });
    switch (found.kind) {
      case 'scheduled':
        this.follow(found);
        return null;
      case 'submitting':
        // Whoever left and came back had started: there is nothing to begin.
        this.armLater(0, this.cameBack);
        return null;
      case 'held':
      case 'outcome_open':
      case 'inquire':
      case 'review':
      case 'stopped':
        return this.take(found);
    }
  }
}
