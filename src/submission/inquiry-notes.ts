import type { Sql } from '../persistence/database.js';
import type { LookupAnswer } from '../providers/payment-provider.js';
import { Batcher } from './batcher.js';
import { fileLookups, planInquiries, type LookedUp, type PlannedInquiry } from './inquiry.store.js';
import type { OpenOutcome } from './open-outcome.store.js';

const LIMITS = { maxBatch: 200, maxRunning: 1 };

/** Writes down what lookups answered and when to ask again, many at a time. */
export class InquiryNotes {
  private readonly answers: Batcher<LookedUp, void>;
  private readonly plans: Batcher<PlannedInquiry, void>;

  constructor(sql: Sql) {
    this.answers = new Batcher<LookedUp, void>(async (lookups) => {
      await fileLookups(sql, lookups);
      return lookups.map(() => undefined);
    }, LIMITS);
    this.plans = new Batcher<PlannedInquiry, void>(async (plans) => {
      await planInquiries(sql, plans);
      return plans.map(() => undefined);
    }, LIMITS);
  }

  /** Files one answer; see `fileLookups`. @throws faults of storage. Twice: filed twice. */
  file(payment: OpenOutcome, answer: LookupAnswer): Promise<void> {
    return this.answers.add({ payment, answer });
  }

  /** Plans the next inquiry, ms from now; see `planInquiries`. @throws faults of storage. */
  plan(payment: OpenOutcome, inMs: number): Promise<void> {
    return this.plans.add({ payment, inMs });
  }
}
