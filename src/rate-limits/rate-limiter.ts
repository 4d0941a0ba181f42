import { hash } from 'node:crypto';
import { LeasedBucket, type Taken } from './leased-bucket.js';
import type { Lease, LeaseRequest } from './lease.store.js';
import type {
  Admission,
  LimitedCall,
  LimitName,
  LimitState,
  LimitSubject,
  RateLimits,
} from './rate-limit.js';

/** Buckets remembered at once; past it the oldest goes, and with it the few tokens it had left. */
const MOST_BUCKETS = 10_000;
/** Longer than this no request waits for its limit: the process then goes by its own count (ms). */
export const LEASE_WITHIN_MS = 300;

export interface RateLimiterOptions {
  readonly lease: (request: LeaseRequest) => Promise<Lease>;
  /** Limits of tenants that have none of their own. */
  readonly byDefault: RateLimits;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly events: {
    /** Postgres could not be asked for tokens: this process goes by its own count for a while. */
    alone(name: LimitName, error: unknown): void;
  };
}

export interface LimitedCaller {
  readonly tenantId: string;
  /** Names the credential's holder, whatever it is made of: it is stored as a digest. */
  readonly client: string;
}

/**
 * Takes a token of the client's bucket and one of its tenant's for every request. All processes share
 * both through Postgres.
 */
export class RateLimiter {
  private readonly buckets = new Map<string, LeasedBucket>();

  constructor(private readonly options: RateLimiterOptions) {}

  /**
   * @returns refused when one of the two buckets is empty: nothing was taken then.
   * Never throws: without Postgres each process goes by its own count. Twice: two tokens each.
   */
  async take({ tenantId, client }: LimitedCaller, call: LimitedCall): Promise<Admission> {
    const suffix = call === 'cancel' ? '-cancel' : '';
    const ofClient = this.bucket(tenantId, 'client', `client${suffix}`, digestOf(client));
    const byClient = await ofClient.take();
    const clientState = stateOf(`client${suffix}`, ofClient, byClient);
    if (byClient.kind === 'refused') return { kind: 'refused', states: [clientState] };
    const ofTenant = this.bucket(tenantId, 'tenant', `tenant${suffix}`, '');
    const byTenant = await ofTenant.take();
    const states = [clientState, stateOf(`tenant${suffix}`, ofTenant, byTenant)];
    if (byTenant.kind === 'refused') ofClient.giveBack();
    return { kind: byTenant.kind, states };
  }

  private bucket(tenantId: string, subject: LimitSubject, name: LimitName, holder: string): LeasedBucket {
    const bucket = holder === '' ? name : `${name}:${holder}`;
    const key = `${tenantId}\n${bucket}`;
    const known = this.buckets.get(key);
    if (known) return known;
    const { lease, byDefault, nowMs, events } = this.options;
    const limit = byDefault[subject];
    const made = new LeasedBucket({
      lease: (wanted) => inTime(lease({ tenantId, subject, bucket, byDefault: limit, wanted })),
      limit,
      nowMs,
      onFault: (error) => events.alone(name, error),
    });
    if (this.buckets.size >= MOST_BUCKETS) this.forgetOldest();
    this.buckets.set(key, made);
    return made;
  }

  private forgetOldest(): void {
    for (const key of this.buckets.keys()) {
      this.buckets.delete(key);
      return;
    }
  }
}

/** A subject of a token may be a mail address: what is stored only tells one holder from another. */
function digestOf(client: string): string {
  return hash('sha256', client).slice(0, 32);
}

function stateOf(name: LimitName, bucket: LeasedBucket, taken: Taken): LimitState {
  return { name, limit: bucket.limit, remaining: taken.remaining, nextInMs: taken.nextInMs };
}

/** @throws Error when no answer came in time; the late one is lost, and at most a block of tokens with it. */
async function inTime(lease: Promise<Lease>): Promise<Lease> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), LEASE_WITHIN_MS);
  });
  // Heard by nobody once the other has won.
  lease.catch(() => undefined);
  return Promise.race([lease, late]).finally(() => clearTimeout(timer));
}
