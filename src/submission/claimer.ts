import type { Sql } from '../persistence/database.js';
import { Batcher } from './batcher.js';
import { claimAttempts, type Claim } from './submission.store.js';
import type { WorkerLease } from './worker-lease.js';

/** Claims open attempts in batches, a provider's apart from another's: owner and fence in one commit. */
export class Claimer {
  private readonly batchers = new Map<string, Batcher<string, Claim | null>>();

  /** @param keyLifeMs life of a provider's key less its margin, from its first use; by name. */
  constructor(
    private readonly sql: Sql,
    private readonly lease: WorkerLease,
    private readonly keyLifeMs: (provider: string) => number,
  ) {}

  /** The claimed attempt, or null when there is nothing to claim now. */
  claim(provider: string, paymentId: string): Promise<Claim | null> {
    let batcher = this.batchers.get(provider);
    if (!batcher) {
      batcher = new Batcher((ids) => this.run(provider, ids), { maxBatch: 200, maxRunning: 2 });
      this.batchers.set(provider, batcher);
    }
    return batcher.add(paymentId);
  }

  private async run(provider: string, ids: readonly string[]): Promise<readonly (Claim | null)[]> {
    const claims = new Map(await claimAttempts(this.sql, ids, this.lease.id, this.keyLifeMs(provider)));
    // Two local submits may ask in one batch: the attempt is handed out once.
    return ids.map((id) => {
      const claim = claims.get(id) ?? null;
      claims.delete(id);
      return claim;
    });
  }
}
