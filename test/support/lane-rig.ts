import { randomBytes, randomUUID } from 'node:crypto';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import type { ProviderResult } from '../../src/providers/payment-provider.js';
import {
  beginSubmissions,
  type BeginResult,
  type Prepared,
} from '../../src/submission/begin-submission.store.js';
import { recordOutcomes, type Outcome } from '../../src/submission/outcome.store.js';
import { giveUpNotSent, resendUnknown, retryNotSent } from '../../src/submission/resend.store.js';
import { claimAttempts } from '../../src/submission/submission.store.js';
import type { Sql } from '../../src/persistence/database.js';
import { insertScheduled, seedLane, seedTenant, type LaneSeed, type PaymentSeed } from './builders.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { seedWorker } from './payment-states.js';
import { resultOf } from './results.js';

/** A call that is under way: its attempt is claimed and not closed. */
export interface CallUnderWay {
  readonly id: string;
  readonly no: number;
  readonly owner: string;
}

/** A lane as a test asks for it: times in ms from now on the database's clock. */
export interface LaneStanding {
  readonly breaker: 'closed' | 'open' | 'half_open';
  readonly breaker_reason: string | null;
  readonly recent: string;
  readonly probe_in_ms: number | null;
  readonly wait_ms: number | null;
  readonly throttle_step: number;
  readonly probe_payment_id: string | null;
  readonly tokens: number;
  readonly paused: boolean;
  readonly pause_reason: string | null;
  readonly paused_by: string | null;
}

const ADAPTER = {
  adapter: 'simulated',
  adapterVersion: '1',
  apiVersion: '1',
  credentialId: 'test',
  account: 'default' as string,
  baseUrl: 'http://127.0.0.1',
} as const;

/** What arming makes of a payment, without an adapter: the lane does not care what is sent. */
export function preparedByHand(payment: Pick<PaymentRow, 'id'>, account = ADAPTER.account): Prepared {
  const sha = randomBytes(32);
  return {
    paymentId: payment.id,
    providerKey: randomUUID(),
    submission: { ...ADAPTER, account, parameters: '{}', parametersSha256: sha.toString('hex') },
    capabilityClass: 'A',
    parameters: randomBytes(16),
    parametersKeyId: 'test',
  };
}

/** A database with lanes, and the statements that take from them, without providers and engines. */
export class LaneRig {
  private constructor(
    readonly db: TestDatabase,
    readonly tenant: string,
    readonly worker: string,
  ) {}

  static async start(): Promise<LaneRig> {
    const db = await createTestDatabase();
    return new LaneRig(db, await seedTenant(db.database), await seedWorker(db.database));
  }

  stop(): Promise<void> {
    return this.db.drop();
  }

  /** A lane that is never short of tokens and whose breaker works. */
  addLane(seed: LaneSeed = {}): Promise<string> {
    return seedLane(this.db.database, { rate: 1_000, burst: 1_000, breaker: true, ...seed });
  }

  /** Payments that are due. */
  due(lane: string, count: number, seed: Partial<PaymentSeed> = {}): Promise<readonly PaymentRow[]> {
    const sql = this.db.database;
    return Promise.all(
      Array.from({ length: count }, () => insertScheduled(sql, { tenant: this.tenant, lane, ...seed })),
    );
  }

  begin(
    lane: string,
    payments: readonly Pick<PaymentRow, 'id'>[],
    sql: Sql = this.db.database,
  ): Promise<BeginResult> {
    // A lane of the product is `<provider>/<account>`; those of tests have an engine's account.
    const account = lane.split('/')[1];
    const batch = payments.map((payment) => preparedByHand(payment, account));
    return beginSubmissions(sql, lane, this.worker, 1_000, batch);
  }

  /** How many of them were started. */
  async started(
    lane: string,
    payments: readonly Pick<PaymentRow, 'id'>[],
    sql?: Sql,
  ): Promise<readonly string[]> {
    const result = await this.begin(lane, payments, sql);
    return result.kind === 'open' ? [...result.moved] : [];
  }

  /** Claims what may be claimed of these payments. */
  async claim(ids: readonly string[]): Promise<readonly CallUnderWay[]> {
    const claims = await claimAttempts(this.db.database, ids, this.worker, 3_600_000);
    return [...claims.values()].map((claim) => ({ id: claim.paymentId, no: claim.no, owner: claim.owner }));
  }

  /** Starts and calls so many new payments of an open lane. */
  async call(lane: string, count: number): Promise<readonly CallUnderWay[]> {
    const started = await this.started(lane, await this.due(lane, count));
    if (started.length !== count)
      throw new Error(`the lane of the test admitted ${started.length} of ${count}`);
    return this.claim(started);
  }

  /** Records what calls ended with, all in one statement. */
  async end(
    calls: readonly CallUnderWay[],
    result: ProviderResult | ((n: number) => ProviderResult),
    sql: Sql = this.db.database,
  ): ReturnType<typeof recordOutcomes> {
    const outcomes = calls.map(({ id, no, owner }, n): Outcome => ({
      paymentId: id,
      generation: 1,
      no,
      owner,
      capabilityClass: 'A',
      phase: 'submit',
      result: typeof result === 'function' ? result(n) : result,
    }));
    return recordOutcomes(sql, outcomes, 1);
  }

  /** Calls new payments one after the other; `1` ends ambiguous, `0` is answered. */
  async answers(lane: string, answers: string): Promise<void> {
    for (const answer of answers) {
      const calls = await this.call(lane, 1);
      await this.end(calls, resultOf(answer === '1' ? 'ambiguous' : 'accepted'));
    }
  }

  /** T11 for these payments. @returns the ids whose next attempt is open. */
  async retried(lane: string, ids: readonly string[]): Promise<readonly string[]> {
    await this.db.query(`UPDATE payment SET next_action_at = clock_timestamp() WHERE id = ANY ($1)`, [ids]);
    return [...(await retryNotSent(this.db.database, lane, this.worker, ids))];
  }

  async givenUp(id: string): Promise<boolean> {
    return (await giveUpNotSent(this.db.database, [id], 'sweep')).has(id);
  }

  /** T15 for a payment that is unknown and was looked up since. */
  async resent(lane: string, id: string): Promise<boolean> {
    return resendUnknown(this.db.database, lane, this.worker, id, {
      ...ADAPTER,
      // As the payments of `paymentIn` were sent.
      account: 'test',
      capabilityClass: 'A',
      readsAreStrong: true,
    });
  }

  async lane(lane: string): Promise<LaneStanding> {
    const [row] = await this.db.query<LaneStanding>(
      `SELECT breaker, breaker_reason, recent, throttle_step, probe_payment_id, tokens, paused, pause_reason, paused_by,
              (extract(epoch FROM probe_at - clock_timestamp()) * 1000)::double precision AS probe_in_ms,
              (extract(epoch FROM wait_until - clock_timestamp()) * 1000)::double precision AS wait_ms
         FROM lane WHERE lane = $1`,
      [lane],
    );
    if (!row) throw new Error('the test asked for a lane that is not there');
    return row;
  }

  /** As if the time had passed that the lane waits: its wait and the wait for its probe are over. */
  async letWaitPass(lane: string): Promise<void> {
    await this.db.query(
      `UPDATE lane SET wait_until = CASE WHEN wait_until > clock_timestamp() THEN clock_timestamp() ELSE wait_until END,
              probe_at = CASE WHEN probe_at > clock_timestamp() THEN clock_timestamp() ELSE probe_at END
        WHERE lane = $1`,
      [lane],
    );
  }

  async state(id: string): Promise<string | undefined> {
    const [row] = await this.db.query<{ state: string }>(`SELECT state FROM payment WHERE id = $1`, [id]);
    return row?.state;
  }
}
