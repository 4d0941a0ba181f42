import type { FinalState } from '../../workflows/contract.js';
import type { ArmedPayment, SubmitPaymentAnswer } from '../../workflows/contract.js';
import type { PaymentServices } from '../../activities/payment.activities.js';
import type { PaymentState } from '../../src/domain/payment-state.js';
import { move } from '../../src/payments/gate.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import {
  SimulatedProvider,
  type SimulatedProviderOptions,
} from '../../src/providers/simulated/simulated.adapter.js';
import type { SubmissionCipher } from '../../src/submission/arming.service.js';
import { SubmissionEngine } from '../../src/submission/submission-engine.js';
import {
  insertScheduled,
  seedLane,
  seedTenant,
  testCipher,
  type LaneSeed,
  type PaymentSeed,
} from './builders.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { findBreaches } from './invariants.js';
import { RecordedEvents } from './recorded-events.js';
import { startSimulator, type Simulator, type SimulatorOptions } from './simulator.js';
import { TappedDatabase } from './tapped-database.js';
import { TappedProvider } from './tapped-provider.js';

/** One worker's memory: its engine, its way to Postgres, its adapter and what it told. */
export interface TestEngine {
  readonly engine: SubmissionEngine;
  readonly services: PaymentServices;
  readonly database: TappedDatabase;
  readonly provider: TappedProvider;
  readonly events: RecordedEvents;
}

export interface EngineOptions {
  /** Runs inquiries that many times faster; default 1,000: the ladder ends after 840 ms. */
  readonly ladderDivisor?: number;
  readonly provider?: Partial<SimulatedProviderOptions>;
  /** A shorter deadline than the worker's, for the call and for what counts as landed. */
  readonly callDeadlineMs?: number;
  readonly poolSize?: number;
  /** Another way to the database, through a proxy. */
  readonly url?: string;
  /** What the engine's cipher does otherwise than the real one. */
  readonly cipher?: Partial<SubmissionCipher>;
  /** Called before the engine starts, to place taps that its start must meet. */
  readonly prepare?: (database: TappedDatabase) => void;
}

export interface PaySeed extends Partial<PaymentSeed> {
  /** Due so many milliseconds from now on the database's clock; absent: at once. */
  readonly inMs?: number;
}

export interface Attempt {
  readonly generation: number;
  readonly no: number;
  readonly phase: 'submit' | 'commit';
  readonly owner: string | null;
  readonly called: boolean;
  readonly closed: boolean;
  readonly result_class: string | null;
  readonly evidence: string | null;
  readonly code: string | null;
}

/** A database, a simulator and as many engines as a test wants. */
export class EngineRig {
  private readonly engines: TestEngine[] = [];
  private readonly databases: TappedDatabase[] = [];

  private constructor(
    readonly db: TestDatabase,
    readonly simulator: Simulator,
    readonly tenant: string,
    readonly lane: string,
  ) {}

  /** Migrated database, running simulator, one tenant and one lane that is never the bottleneck. */
  static async start(simulator: SimulatorOptions = {}): Promise<EngineRig> {
    const [db, sim] = await Promise.all([createTestDatabase(), startSimulator(simulator)]);
    const tenant = await seedTenant(db.database);
    const lane = await seedLane(db.database, { rate: 20_000, burst: 5_000 });
    return new EngineRig(db, sim, tenant, lane);
  }

  /** Starts another worker's engine on this database and simulator. */
  async engine(options: EngineOptions = {}): Promise<TestEngine> {
    const name = `engine-${this.engines.length + 1}`;
    const database = this.tapped(name, options.poolSize, options.url);
    options.prepare?.(database);
    const provider = new TappedProvider(
      new SimulatedProvider({
        baseUrl: this.simulator.url,
        apiKey: this.simulator.apiKeys[options.provider?.profile ?? 'A'],
        name: 'simulated',
        ...options.provider,
      }),
    );
    const events = new RecordedEvents();
    const engine = new SubmissionEngine({
      database,
      providers: { get: (name) => (name === provider.name ? provider : undefined) },
      cipher: {
        openDestination: (of) => testCipher.openDestination(of),
        sealParameters: (of) => testCipher.sealParameters(of),
        openParameters: (of) => testCipher.openParameters(of),
        ...options.cipher,
      },
      events: events.sink,
      ladderDivisor: options.ladderDivisor ?? 1_000,
      ...(options.callDeadlineMs === undefined ? {} : { callDeadlineMs: options.callDeadlineMs }),
    });
    await engine.start();
    const made = { engine, services: engine.services, database, provider, events };
    this.engines.push(made);
    return made;
  }

  /** Another way to this database that a test can tap; closed with the rig. */
  tapped(applicationName: string, poolSize = 10, url = this.db.urlOf('payments_worker')): TappedDatabase {
    const database = new TappedDatabase({ url, poolSize, applicationName });
    this.databases.push(database);
    return database;
  }

  /** Another lane. @returns its name. */
  addLane(seed: LaneSeed): Promise<string> {
    return seedLane(this.db.database, seed);
  }

  /** Inserts one payment through the product's own insert. */
  async pay({ inMs, ...seed }: PaySeed = {}): Promise<PaymentRow> {
    const executeAt = inMs === undefined ? {} : { executeAt: await this.timeIn(inMs) };
    return insertScheduled(this.db.database, {
      tenant: this.tenant,
      lane: this.lane,
      ...executeAt,
      ...seed,
    });
  }

  /** Inserts many payments that are all due at one instant. */
  async payMany(count: number, inMs: number, seed: PaySeed = {}): Promise<readonly PaymentRow[]> {
    const executeAt = await this.timeIn(inMs);
    return Promise.all(Array.from({ length: count }, () => this.pay({ ...seed, executeAt })));
  }

  /** A Postgres timestamptz text so many milliseconds from now on the database's clock. */
  async timeIn(ms: number): Promise<string> {
    const [row] = await this.db.query<{ at: string }>(
      `SELECT clock_timestamp() + $1::double precision * interval '1 ms' AS at`,
      [ms],
    );
    return row?.at ?? '';
  }

  /** Tells the simulator before which time each payment must not be charged. */
  async expectNotBefore(payments: readonly PaymentRow[]): Promise<void> {
    const rows = await this.db.query<{ id: string; ms: number }>(
      `SELECT id, (extract(epoch FROM execute_at) * 1000)::double precision AS ms FROM payment WHERE id = ANY ($1)`,
      [payments.map((p) => p.id)],
    );
    await this.simulator.expect(Object.fromEntries(rows.map((row) => [row.id, row.ms])));
  }

  /** One move by a command, as the API would ask for it. @throws Error when it loses. */
  async move(
    payment: Pick<PaymentRow, 'id'>,
    rule: 'T3' | 'T4' | 'T5',
    cause: 'hold' | 'release' | 'cancel',
  ): Promise<void> {
    const result = await move(this.db.database, {
      rule,
      cause,
      tenant: this.tenant,
      paymentId: payment.id,
      actor: 'api_key:test',
      announce: null,
    });
    if (result.kind !== 'moved') throw new Error(`${cause} of the test was ${result.kind}`);
  }

  /** T2: another time, so many milliseconds from now. @returns the payment's new version. */
  async reschedule(payment: Pick<PaymentRow, 'id' | 'not_after'>, inMs: number): Promise<number> {
    const result = await move(this.db.database, {
      rule: 'T2',
      tenant: this.tenant,
      paymentId: payment.id,
      actor: 'api_key:test',
      newExecuteAt: await this.timeIn(inMs),
      newNotAfter: await this.timeIn(inMs + 3_600_000),
      announce: null,
    });
    if (result.kind !== 'moved') throw new Error(`the reschedule of the test was ${result.kind}`);
    return result.version;
  }

  async state(paymentId: string): Promise<PaymentState> {
    const [row] = await this.db.query<{ state: PaymentState }>(`SELECT state FROM payment WHERE id = $1`, [
      paymentId,
    ]);
    if (!row) throw new Error('the test asked for a payment that is not there');
    return row.state;
  }

  /** The due time on this process's monotonic clock, about: to aim at it, never to judge by it. */
  async localDueMs(payment: Pick<PaymentRow, 'id'>): Promise<number> {
    const [row] = await this.db.query<{ in_ms: number }>(
      `SELECT (extract(epoch FROM execute_at - clock_timestamp()) * 1000)::double precision AS in_ms
         FROM payment WHERE id = $1`,
      [payment.id],
    );
    return performance.now() + (row?.in_ms ?? NaN);
  }

  async deadlinePassed(paymentId: string): Promise<boolean> {
    const [row] = await this.db.query<{ passed: boolean }>(
      `SELECT clock_timestamp() > not_after AS passed FROM payment WHERE id = $1`,
      [paymentId],
    );
    return row?.passed ?? false;
  }

  async isPaused(lane: string): Promise<boolean> {
    const [row] = await this.db.query<{ paused: boolean }>(`SELECT paused FROM lane WHERE lane = $1`, [lane]);
    return row?.paused ?? false;
  }

  /** True when the key of a payment's generation may no longer be used. */
  async isKeyOver({ id }: Pick<PaymentRow, 'id'>): Promise<boolean> {
    const [row] = await this.db.query<{ over: boolean | null }>(
      `SELECT key_valid_until <= clock_timestamp() AS over FROM submission WHERE payment_id = $1`,
      [id],
    );
    return row?.over ?? false;
  }

  /** The next retry or inquiry of a payment is due now. */
  async makeDue({ id }: Pick<PaymentRow, 'id'>): Promise<void> {
    await this.db.query(`UPDATE payment SET next_action_at = clock_timestamp() WHERE id = $1`, [id]);
  }

  /** The states a payment went through, oldest first. */
  async history(paymentId: string): Promise<readonly string[]> {
    const rows = await this.db.query<{ to_state: string }>(
      `SELECT to_state FROM payment_transition WHERE payment_id = $1 ORDER BY seq`,
      [paymentId],
    );
    return rows.map((row) => row.to_state);
  }

  /** The rules that moved a payment, oldest first. */
  async rules(paymentId: string): Promise<readonly string[]> {
    const rows = await this.db.query<{ rule: string }>(
      `SELECT detail::json ->> 'rule' AS rule FROM payment_transition WHERE payment_id = $1 ORDER BY seq`,
      [paymentId],
    );
    return rows.map((row) => row.rule);
  }

  attempts(paymentId: string): Promise<readonly Attempt[]> {
    return this.db.query<Attempt>(
      `SELECT generation, no, phase, owner, call_started_at IS NOT NULL AS called, closed_at IS NOT NULL AS closed,
              result_class, evidence, code
         FROM submission_attempt WHERE payment_id = $1 ORDER BY generation, no`,
      [paymentId],
    );
  }

  /** Evidence of a payment as `source:kind`, oldest first. */
  async evidence(paymentId: string): Promise<readonly string[]> {
    const rows = await this.db.query<{ text: string }>(
      `SELECT source || ':' || kind AS text FROM evidence WHERE payment_id = $1 ORDER BY id`,
      [paymentId],
    );
    return rows.map((row) => row.text);
  }

  /** The one object that may be committed; null in one phase and before it was made. */
  async commitTarget(paymentId: string): Promise<string | null> {
    const [row] = await this.db.query<{ commit_target: string | null }>(
      `SELECT commit_target FROM submission WHERE payment_id = $1 ORDER BY generation DESC LIMIT 1`,
      [paymentId],
    );
    return row?.commit_target ?? null;
  }

  async openCases(paymentId: string): Promise<readonly string[]> {
    const rows = await this.db.query<{ reason: string }>(
      `SELECT reason FROM review_case WHERE payment_id = $1 AND closed_at IS NULL`,
      [paymentId],
    );
    return rows.map((row) => row.reason);
  }

  async workerIds(): Promise<readonly string[]> {
    return (await this.db.query<{ id: string }>(`SELECT id FROM worker`)).map((row) => row.id);
  }

  /** As the owner with the triggers of payments off: a state that no program may write. */
  async plant(text: string): Promise<void> {
    await this.db.query(
      `ALTER TABLE payment DISABLE TRIGGER ALL; ${text}; ALTER TABLE payment ENABLE TRIGGER ALL`,
    );
  }

  /** What the judge of the tests finds wrong; nothing publishes here, so outbox rows may be old. */
  breaches(except: readonly number[] = []): ReturnType<typeof findBreaches> {
    return findBreaches((text) => this.db.query(text), { except: [14, ...except] });
  }

  /** The same for one payment, where others of the test were planted. */
  async breachesOf(paymentId: string): Promise<Awaited<ReturnType<typeof findBreaches>>> {
    return (await this.breaches()).filter((breach) => breach.paymentId === paymentId);
  }

  async stop(): Promise<void> {
    for (const { engine, provider } of this.engines) {
      await engine.stop().catch(() => undefined);
      await provider.close();
    }
    for (const database of this.databases) await database.close();
    await this.simulator.stop();
    await this.db.drop();
  }
}

/** The input of both activities of a pair. */
export function armedFor(payment: Pick<PaymentRow, 'id' | 'lane' | 'version'>): ArmedPayment {
  return { paymentId: payment.id, lane: payment.lane, version: payment.version };
}

/** Where a life ended: final, or where only people or a release go on. */
export type LifeEnd = FinalState | 'needs_review' | 'held';

export interface LifeOptions {
  /** Runs the begin of the pair; absent: the same engine. */
  readonly beginOn?: TestEngine;
  /** Bound on answers of one life. */
  readonly maxAnswers?: number;
}

const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms));

/**
 * Lives one payment as its workflow would: the pair at once, then what the answers ask for, until
 * it is final or waits for people.
 */
export async function live(
  on: TestEngine,
  payment: Pick<PaymentRow, 'id' | 'lane' | 'version'>,
  options: LifeOptions = {},
): Promise<LifeEnd> {
  let armed = armedFor(payment);
  let both = true;
  for (let i = 0; i < (options.maxAnswers ?? 200); i++) {
    if (both) void (options.beginOn ?? on).services.begin.beginSubmission(armed).catch(() => undefined);
    const answer = await on.services.submit.submitPayment(armed);
    both = false;
    switch (answer.kind) {
      case 'stopped':
        return answer.state;
      case 'review':
        return 'needs_review';
      case 'held':
        return 'held';
      case 'outcome_open':
      case 'inquire': {
        const end = await ask(on, payment.id);
        if (end !== 'resend') return end;
        break;
      }
      case 'not_due':
        armed = { ...armed, version: answer.version };
        both = true;
        await pause(Math.max(0, answer.armInMs));
        break;
      case 'lane_busy':
        both = true;
        await pause(answer.retryAfterMs);
        break;
      case 'retry':
        await pause(answer.afterMs);
    }
  }
  throw new Error(`payment ${payment.id} did not come to an end`);
}

/** Inquires until something is decided. */
export async function ask(on: TestEngine, paymentId: string): Promise<LifeEnd | 'resend'> {
  for (let i = 0; i < 200; i++) {
    const answer = await on.services.inquiry.inquire({ paymentId });
    if (answer.kind === 'stopped') return answer.state;
    if (answer.kind === 'review') return 'needs_review';
    if (answer.kind === 'resend') return 'resend';
    await pause(answer.afterMs);
  }
  throw new Error(`the inquiry of ${paymentId} did not come to an end`);
}

/** Both activities of a pair, at once. */
export function pair(
  on: TestEngine,
  payment: Pick<PaymentRow, 'id' | 'lane' | 'version'>,
): {
  readonly begin: ReturnType<PaymentServices['begin']['beginSubmission']>;
  readonly submit: Promise<SubmitPaymentAnswer>;
} {
  const armed = armedFor(payment);
  return {
    begin: on.services.begin.beginSubmission(armed),
    submit: on.services.submit.submitPayment(armed),
  };
}
