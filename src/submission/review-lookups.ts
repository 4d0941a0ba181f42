import { REVIEW_LOOKUP_MS } from '../domain/submission-policy.js';
import type { Database, Sql, Statement } from '../persistence/database.js';
import { Repeating } from '../platform/repeating.js';
import type { SubmissionEvents } from './submission-events.js';

const TICK_MS = 5_000;
/** Lookups of one tick: payments in review are few, and the lanes' room for lookups belongs to all. */
const PER_TICK = 10;

const TAKE: Statement = {
  name: 'take-review-lookups',
  text: `WITH due AS (
  SELECT p.id FROM payment p
   WHERE p.state = 'needs_review' AND (p.next_action_at IS NULL OR p.next_action_at <= clock_timestamp())
   ORDER BY p.next_action_at NULLS FIRST LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE payment p SET next_action_at = clock_timestamp() + $2::double precision * interval '1 ms'
  FROM due WHERE p.id = due.id RETURNING p.id`,
};

/**
 * Takes payments in review whose next lookup is due and plans the one after it (index
 * payment_needs_review holds all of that state).
 * @returns at most `limit` ids. Twice: the second call finds them planned.
 */
export async function takeReviewLookups(
  sql: Sql,
  limit: number,
  everyMs: number,
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>(TAKE, [limit, everyMs]);
  return rows.map((row) => row.id);
}

/**
 * Keeps asking about payments while people decide, once an hour each: decisive evidence settles them
 * (T20), anything else is filed for the people. A loop in every worker; a payment is taken by one.
 */
export class ReviewLookups {
  private readonly loop: Repeating;

  /** @param reviewLookup asks about one payment; see `SubmissionEngine.reviewLookup`. */
  constructor(
    private readonly database: Database,
    private readonly reviewLookup: (paymentId: string) => Promise<unknown>,
    private readonly events: Pick<SubmissionEvents, 'fault'>,
    private readonly ladderDivisor: number,
    tickMs = TICK_MS,
  ) {
    this.loop = new Repeating({
      step: () => this.tick(),
      everyMs: tickMs,
      onFault: (error) => events.fault('review-lookup', error),
    });
  }

  start(): void {
    this.loop.start();
  }

  /** No lookup begins after this; resolves when those under way have ended. */
  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async tick(): Promise<undefined> {
    const ids = await takeReviewLookups(this.database, PER_TICK, REVIEW_LOOKUP_MS / this.ladderDivisor);
    await Promise.all(
      ids.map((id) =>
        this.reviewLookup(id).catch((error: unknown) => this.events.fault('review-lookup', error)),
      ),
    );
  }
}
