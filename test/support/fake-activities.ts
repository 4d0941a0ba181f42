import { createPaymentActivities } from '../../activities/payment.activities.js';
import { assert } from '../../src/domain/assert.js';
import type {
  ArmedPayment,
  BeginSubmissionAnswer,
  CancelAnswer,
  InquireAnswer,
  LookAnswer,
  PaymentActivities,
  SubmitPaymentAnswer,
} from '../../workflows/contract.js';
import { FakePayment, type FakeClock } from './fake-payment.js';

export type ActivityName = keyof PaymentActivities;
type Undecided = { readonly kind: 'undecided'; readonly afterMs: number };
type Answers = {
  beginSubmission: BeginSubmissionAnswer;
  submitPayment: SubmitPaymentAnswer;
  inquire: InquireAnswer | Undecided;
  cancelPayment: CancelAnswer;
  look: LookAnswer;
};
type Scripted = { readonly activity: ActivityName; readonly answer: unknown };

/** One pair in a worker's memory: both activities of one payment at one version. */
interface ArmedEntry {
  begins: number;
  submits: number;
  /** The begin's word, once there is one. */
  told: BeginSubmissionAnswer | null;
}

/**
 * The activities of the product over rows in memory. An armed activity waits until the fake
 * database's clock says due, as a worker's memory would; the row decides everything. The real
 * activity factory stands in between, so that its translation of failures is tested as well.
 */
export class FakeActivities {
  readonly clock: FakeClock = { nowMs: Date.UTC(2027, 0, 4, 9) };
  readonly activities: PaymentActivities;
  /** Faults of the fakes themselves, such as a move that the row refused: a test must find none. */
  readonly faults: unknown[] = [];
  private readonly payments = new Map<string, FakePayment>();
  private readonly entries = new Map<string, ArmedEntry>();
  private readonly asked = new Map<string, { activity: ActivityName; version: number | null }[]>();
  private readonly scripts = new Map<string, Scripted[]>();
  private readonly begun = new Map<string, number>();
  private waiting: (() => void)[] = [];

  /**
   * @param beginsRecorded resolves when the server has so many results of the payment's
   * beginSubmission; submitPayment's then comes after it. Absent: both go back together, as paced
   * ones do.
   */
  constructor(
    private readonly beginsRecorded: ((paymentId: string, times: number) => Promise<void>) | null = null,
  ) {
    this.activities = createPaymentActivities({
      begin: { beginSubmission: (input) => this.run('beginSubmission', input, () => this.begin(input)) },
      submit: { submitPayment: (input) => this.run('submitPayment', input, () => this.submit(input)) },
      inquiry: { inquire: (input) => this.run('inquire', input, () => this.inquire(input.paymentId)) },
      commands: {
        cancelPayment: (input) => this.run('cancelPayment', input, () => this.cancel(input.paymentId)),
        look: (input) => this.run('look', input, () => this.look(input.paymentId)),
      },
      onFault: (_operation, error) => this.faults.push(error),
    });
  }

  /** A new scheduled payment, due in so many ms on the database's clock. */
  add(id: string, dueInMs: number): FakePayment {
    assert(!this.payments.has(id), `payment ${id} exists: each test names its own`);
    const payment = new FakePayment(id, this.clock, this.clock.nowMs + dueInMs);
    this.payments.set(id, payment);
    return payment;
  }

  /** Moves the database's clock; what waits for a due time goes on. */
  pass(ms: number): void {
    this.clock.nowMs += ms;
    this.changed();
  }

  /** The next call of this activity gets this answer, whatever the row says; an Error is thrown. */
  script<A extends ActivityName>(
    payment: FakePayment,
    activity: A,
    answer: Answers[A] | Promise<Answers[A]> | Error,
  ): void {
    const scripts = this.scripts.get(payment.id) ?? [];
    scripts.push({ activity, answer });
    this.scripts.set(payment.id, scripts);
  }

  /** How often this activity was called for the payment so far, retries included. */
  count(payment: FakePayment, activity: ActivityName): number {
    return this.asked.get(payment.id)?.filter((a) => a.activity === activity).length ?? 0;
  }

  /** Every activity called for the payment, in order. */
  names(payment: FakePayment): readonly ActivityName[] {
    return (this.asked.get(payment.id) ?? []).map((a) => a.activity);
  }

  /** The versions that the calls of an armed activity carried, in order. */
  versions(payment: FakePayment, activity: 'beginSubmission' | 'submitPayment'): readonly (number | null)[] {
    return (this.asked.get(payment.id) ?? []).filter((a) => a.activity === activity).map((a) => a.version);
  }

  /** Resolves when the activity was called so many times; the caller's test bounds the wait. */
  async seen(payment: FakePayment, activity: ActivityName, times = 1): Promise<void> {
    await this.until(() => this.count(payment, activity) >= times);
  }

  /** Resolves when both activities of the nth pair are in a worker. */
  async armed(payment: FakePayment, pairs = 1): Promise<void> {
    await this.seen(payment, 'beginSubmission', pairs);
    await this.seen(payment, 'submitPayment', pairs);
  }

  /** Resolves when the condition over rows and clock holds. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** A row was changed from outside: whoever waits looks again. */
  changed(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const look of waiting) look();
  }

  private async run<A extends ActivityName>(
    activity: A,
    input: { readonly paymentId: string; readonly version?: number },
    answer: () => Promise<Answers[A]>,
  ): Promise<Answers[A]> {
    const asked = this.asked.get(input.paymentId) ?? [];
    asked.push({ activity, version: input.version ?? null });
    this.asked.set(input.paymentId, asked);
    this.changed();
    const scripts = this.scripts.get(input.paymentId) ?? [];
    const index = scripts.findIndex((s) => s.activity === activity);
    if (index < 0) return answer();
    const scripted = scripts.splice(index, 1)[0]?.answer;
    if (scripted instanceof Error) throw scripted;
    return (await scripted) as Answers[A];
  }

  private get(id: string): FakePayment {
    const payment = this.payments.get(id);
    if (!payment) throw new Error(`no payment ${id}`);
    return payment;
  }

  private entry({ paymentId, version }: ArmedPayment): ArmedEntry {
    const key = `${paymentId}/${version}`;
    const entry = this.entries.get(key) ?? { begins: 0, submits: 0, told: null };
    this.entries.set(key, entry);
    return entry;
  }

  private async begin(input: ArmedPayment): Promise<BeginSubmissionAnswer> {
    const payment = this.get(input.paymentId);
    const entry = this.entry(input);
    entry.begins++;
    entry.told = null;
    const answer = payment.beforeDue(input.version) ?? (await this.beginWhenDue(payment));
    entry.begins--;
    entry.told = answer;
    this.begun.set(payment.id, (this.begun.get(payment.id) ?? 0) + 1);
    this.changed();
    if (answer.kind === 'started' && !this.beginsRecorded) await this.until(() => entry.submits === 0);
    return answer;
  }

  private async beginWhenDue(payment: FakePayment): Promise<BeginSubmissionAnswer> {
    await this.dueOrOver(payment);
    if (payment.endedHere) return payment.stopped();
    if (payment.state === 'scheduled' && !payment.laneIsOpen) return payment.laneBusy();
    payment.begin();
    return payment.standing();
  }

  /** The due time as read now: a worker that holds a payment hears of a reschedule only then. */
  private async dueOrOver(payment: FakePayment): Promise<void> {
    const { dueAtMs } = payment;
    await this.until(() => this.clock.nowMs >= dueAtMs || payment.endedHere !== null);
  }

  private async submit(input: ArmedPayment): Promise<SubmitPaymentAnswer> {
    const payment = this.get(input.paymentId);
    const entry = this.entry(input);
    entry.submits++;
    const answer = await this.submitWhenDue(payment, entry, input.version);
    await this.beginsRecorded?.(payment.id, this.begun.get(payment.id) ?? 0);
    entry.submits--;
    // As in a worker's memory: a later pair of the same version starts anew.
    if (entry.begins === 0 && entry.submits === 0) this.entries.delete(`${input.paymentId}/${input.version}`);
    if (answer.kind === 'stopped') payment.endedHere = answer.state;
    this.changed();
    return answer;
  }

  private async submitWhenDue(
    payment: FakePayment,
    entry: ArmedEntry,
    version: number,
  ): Promise<SubmitPaymentAnswer> {
    const early = payment.beforeDue(version);
    if (early && early.kind !== 'started') return early;
    if (!early) await this.dueOrOver(payment);
    for (;;) {
      const { version: before } = payment;
      if (payment.endedHere) return payment.stopped();
      if (entry.told && entry.told.kind !== 'started') return entry.told;
      const result = entry.begins > 0 ? null : payment.claim();
      if (result) {
        this.changed();
        payment.record(await result);
      }
      const answer = entry.begins > 0 ? null : payment.outcome(version);
      if (answer) return answer;
      if (!result) await this.until(this.anyChange(payment, before));
    }
  }

  /** True on the second look: something changed since, whatever it was; at once when the row did. */
  private anyChange(payment: FakePayment, before: number): () => boolean {
    let looks = 0;
    return () => looks++ > 0 || payment.version !== before;
  }

  private async inquire(id: string): Promise<InquireAnswer | Undecided> {
    const payment = this.get(id);
    if (payment.state === 'submitted' || payment.state === 'unknown') {
      const lookup = payment.lookups.shift() ?? 'succeeded';
      if (typeof lookup === 'object') return { kind: 'undecided', afterMs: lookup.undecidedMs };
      payment.follow(lookup);
      this.changed();
    }
    if (payment.state === 'submitting') return { kind: 'resend' };
    return payment.state === 'needs_review' ? { kind: 'review' } : payment.stopped();
  }

  private async cancel(id: string): Promise<CancelAnswer> {
    const payment = this.get(id);
    payment.cancel();
    const standing = payment.standing();
    if (standing.kind !== 'stopped') return { kind: 'refused' };
    payment.endedHere = standing.state;
    this.changed();
    return standing;
  }

  private async look(id: string): Promise<LookAnswer> {
    const payment = this.get(id);
    const found = payment.look();
    if (found.kind === 'stopped') payment.endedHere = found.state;
    this.changed();
    return found;
  }
}
