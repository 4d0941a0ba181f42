import { hash } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import { monotonicMs } from '../platform/clock.js';
import type { Credential } from './credential.js';

/** Failures that may come at once, and how long one of them counts (ms). */
interface Budget {
  readonly burst: number;
  readonly refillMs: number;
}

/** Everything that fails from one address: 60 at once, then one a second. */
export const FAILURES_PER_ADDRESS: Budget = Object.freeze({ burst: 60, refillMs: 1_000 });
/** One key id from one address: a client with an old key is slowed down before it slows its neighbours. */
export const FAILURES_PER_KEY: Budget = Object.freeze({ burst: 10, refillMs: 6_000 });
/** However many failed at once, nobody waits longer for the next try (ms). */
const LONGEST_WAIT_MS = 60_000;
/** Addresses, keys at addresses and good credentials remembered at once, each; the oldest goes. */
export const LIMITER_ENTRIES = 10_000;
/** A credential that was good so recently is never held back: the life of a token of people (ms). */
export const KNOWN_GOOD_MS = 15 * 60_000;

export interface Caller {
  /** Of the client, as far as trusted proxies tell. */
  readonly address: string;
  readonly credential: Credential;
}

/**
 * Slows down who guesses. Counts failures per address and per key id at that address, in this
 * process's memory: n processes allow n times as much, and a restart forgets. Key ids are no secret,
 * so a key id alone is never counted: else anybody could lock its owner out. The same holds at a
 * shared address: a credential that was good within 15 minutes is judged, never held back.
 *
 * Each budget is a bucket that refills steadily (GCRA), so no edge of a window doubles it. Requests that
 * are judged at the same moment do not see each other: they can exceed a budget once, by their number.
 */
export class FailureLimiter {
  /** Name of the bucket to the monotonic ms at which it is full again. */
  private readonly fullAtMs = new Map<string, number>();
  /** Digest of a credential to the monotonic ms until which it is known to be good. */
  private readonly goodUntilMs = new Map<string, number>();

  constructor(private readonly nowMs: () => number = monotonicMs) {}

  /** Milliseconds until this caller may try again; 0: now. Counts nothing. */
  waitMs(caller: Caller): number {
    if (caller.credential.kind === 'none') return 0;
    const waitMs = Math.max(...bucketsOf(caller).map(({ name, budget }) => this.waitOf(name, budget)));
    return waitMs > 0 && this.isKnownGood(caller.credential) ? 0 : waitMs;
  }

  /** The credential was refused. No credential at all is no guess. */
  failed(caller: Caller): void {
    if (caller.credential.kind === 'none') return;
    const digest = digestOf(caller.credential);
    if (digest !== null) this.goodUntilMs.delete(digest);
    const nowMs = this.nowMs();
    for (const { name, budget } of bucketsOf(caller)) {
      const fullAtMs = Math.max(this.fullAtMs.get(name) ?? nowMs, nowMs) + budget.refillMs;
      const latestMs = nowMs + (budget.burst - 1) * budget.refillMs + LONGEST_WAIT_MS;
      remember(this.fullAtMs, name, Math.min(fullAtMs, latestMs));
    }
  }

  /** The credential was good. */
  succeeded({ credential }: Caller): void {
    const digest = digestOf(credential);
    if (digest !== null) remember(this.goodUntilMs, digest, this.nowMs() + KNOWN_GOOD_MS);
  }

  /** Entries held, for tests of the bound. */
  size(): { readonly buckets: number; readonly good: number } {
    return { buckets: this.fullAtMs.size, good: this.goodUntilMs.size };
  }

  private waitOf(name: string, { burst, refillMs }: Budget): number {
    const fullAtMs = this.fullAtMs.get(name);
    if (fullAtMs === undefined) return 0;
    const untilFullMs = fullAtMs - this.nowMs();
    if (untilFullMs <= 0) this.fullAtMs.delete(name);
    return Math.max(0, untilFullMs - (burst - 1) * refillMs);
  }

  private isKnownGood(credential: Credential): boolean {
    const digest = digestOf(credential);
    return digest !== null && this.nowMs() < (this.goodUntilMs.get(digest) ?? Number.NEGATIVE_INFINITY);
  }
}

function bucketsOf({ address, credential }: Caller): readonly { name: string; budget: Budget }[] {
  const network = networkOf(address);
  const buckets = [{ name: network, budget: FAILURES_PER_ADDRESS }];
  if (credential.kind === 'api_key') {
    buckets.push({ name: `${credential.parts.id} ${network}`, budget: FAILURES_PER_KEY });
  }
  return buckets;
}

/** A credential must not stand in memory longer than its request: its digest does. */
function digestOf(credential: Credential): string | null {
  return 'text' in credential ? hash('sha256', credential.text, 'base64') : null;
}

/** As the newest entry; the oldest makes room. */
function remember(entries: Map<string, number>, name: string, atMs: number): void {
  entries.delete(name);
  if (entries.size >= LIMITER_ENTRIES) {
    for (const oldest of entries.keys()) {
      entries.delete(oldest);
      break;
    }
  }
  entries.set(name, atMs);
}

const GROUPS = 8;
/** A household or a host is given at least this much of IPv6, so one of its addresses means nothing. */
const GROUPS_OF_NETWORK = 4;

/** The IPv4 address, also one written as IPv6, or the /64 of an IPv6 address; other text: `unknown`. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  const mapped = /^::ffff:([\d.]+)$/i.exec(plain)?.[1] ?? plain;
  if (isIPv4(mapped)) return mapped;
  if (!isIPv6(plain)) return 'unknown';
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Math.max(0, GROUPS - left.length - right.length);
  const groups = [...left, ...Array<string>(tail === undefined ? 0 : zeros).fill('0'), ...right];
  const network = groups.slice(0, GROUPS_OF_NETWORK).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
