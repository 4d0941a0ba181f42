import type { ProviderStatus, ResultClass } from '../../domain/provider-outcome.js';
import type { StripeResource } from './stripe.object.js';

/** What an answer is held against. */
export interface Expected {
  readonly resource: StripeResource;
  readonly livemode: boolean;
  /** null where the caller does not know the money (cancel): then nothing of it is compared. */
  readonly money: {
    readonly amountMinor: bigint;
    readonly currency: string;
    readonly destination: string;
  } | null;
  readonly paymentId: string;
  readonly generation: number;
  readonly providerKey: string;
  /** The object that the call named; null when it named none. */
  readonly providerRef: string | null;
}

/**
 * move: the call moves the money. create: it makes an inert object. commit: it releases one. cancel:
 * it stops one. read: a lookup; an inert object is an answer there.
 */
export type CallKind = 'move' | 'create' | 'commit' | 'cancel' | 'read';

/** What one answer comes to. */
export interface Verdict {
  readonly class: ResultClass;
  readonly status: ProviderStatus | null;
  readonly code: string;
}

/** Not understood, with the word that tells people what came instead. */
export function ambiguous(code: string): Verdict {
  return { class: 'ambiguous', status: null, code };
}
