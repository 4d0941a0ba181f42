import type { ProviderStatus, ResultClass } from '../domain/provider-outcome.js';

/**
 * The provider port. An adapter never retries, sleeps, touches our tables or throws an SDK
 * error: every network call returns one result. Money is bigint minor units.
 */

/** A duration in whole milliseconds, or one of two words of the provider's documentation. */
export type Life = number | 'forever' | 'unpublished';

/** What a provider promises. Start-up refuses a descriptor with a missing field. */
export interface ProviderDescriptor {
  readonly idempotency: {
    readonly mode: 'none' | 'key' | 'natural_reference' | 'object_state';
    /** How long the provider remembers a key, from its first use. */
    readonly life: Life;
    /** Milliseconds before the end of the life after which nothing is sent again. */
    readonly marginMs: number;
    readonly scope: 'account' | 'api_key' | 'region' | 'global';
    readonly errors: 'stored' | 'forgotten' | 're-executed';
  };
  readonly lookup: {
    readonly by: readonly ('provider_id' | 'key' | 'reference' | 'list_scan')[];
    readonly consistency: 'strong' | 'none' | { readonly lagMs: number };
  };
  /** Longest time, in ms, that a lost request may still execute. */
  readonly maxInFlightMs: number;
  /** Longest normal time, in ms, to a final status. */
  readonly settlesWithinMs: number;
  /** 1: submit moves the money. 2: submit makes an inert object, commit releases it. */
  readonly phases: 1 | 2;
  readonly cancel: 'never' | 'before_commit' | 'while_pending';
  /** Milliseconds during which a success can still come back as a return; 0: never. */
  readonly lateFailureMs: number;
  /** Calls per second that the provider declares for one account. */
  readonly ratePerSecond: number;
  readonly webhooks: 'none' | 'simulated_v1' | 'stripe_v1';
  readonly settlement: 'none' | 'csv';
  readonly amount: { readonly minMinor: bigint; readonly maxMinor: bigint };
}

/** One intention towards the provider: the frozen facts of one generation. */
export interface CanonicalPayment {
  readonly paymentId: string;
  readonly generation: number;
  readonly providerKey: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly destination: string;
  readonly reference: string | null;
  readonly description: string | null;
}

/** The request, built once and stored: nothing in it changes while the generation lives. */
export interface PreparedSubmission {
  /** Canonical text of the request's parameters. Holds the destination: encrypt at rest. */
  readonly parameters: string;
  /** SHA-256 of `parameters`, lower-case hex. */
  readonly parametersSha256: string;
  readonly adapter: string;
  readonly adapterVersion: string;
  readonly apiVersion: string;
  readonly credentialId: string;
  readonly account: string;
  readonly baseUrl: string;
}

/** One network call inside a generation. */
export interface AttemptContext {
  readonly paymentId: string;
  readonly generation: number;
  readonly attempt: number;
  readonly providerKey: string;
  /** Milliseconds from the call of the adapter until it must have answered. */
  readonly deadlineMs: number;
  /**
   * Asked on the connected socket just before the first byte. False: the adapter writes nothing
   * and returns `not_sent` with code `lease_lost`.
   */
  readonly mayWrite: () => boolean;
}

export interface Observed {
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  readonly destination: string | null;
}

/** The one result of one network call. */
export interface ProviderResult {
  readonly class: ResultClass;
  /** Set for `accepted`, `rejected` and for a lookup's hit: the object's status. */
  readonly status: ProviderStatus | null;
  readonly providerRef: string | null;
  readonly requestId: string | null;
  readonly httpStatus: number | null;
  /** The provider said that it repeated a stored answer. */
  readonly replayed: boolean;
  /** At least one request byte was handed to the socket. */
  readonly bytesSent: boolean;
  readonly observed: Observed;
  /** A short word from a closed list of the adapter; never the provider's free text. */
  readonly code: string;
  /** Milliseconds the provider asked us to wait, for `throttled`; null when it did not say. */
  readonly retryAfterMs: number | null;
}

export interface LookupRefs {
  readonly providerRef: string | null;
  readonly providerKey: string;
  readonly paymentId: string;
  readonly generation: number;
  readonly deadlineMs: number;
  /** Our instruction: a hit is `found` only when all money fields are equal. */
  readonly expected: Pick<CanonicalPayment, 'amountMinor' | 'currency' | 'destination'>;
}

/**
 * found: exactly one object, equal to the instruction. found_other: one, but not our instruction.
 * found_many: several under our key or reference. absent: the provider says it has none, which
 * alone proves nothing. cannot_tell: no understandable answer.
 */
export type LookupAnswer =
  | { readonly kind: 'found'; readonly result: ProviderResult }
  | { readonly kind: 'found_other'; readonly result: ProviderResult }
  | { readonly kind: 'found_many'; readonly count: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'cannot_tell'; readonly code: string };

/**
 * A payment that the adapter cannot express, said by `prepare` before anything was sent.
 * `code` is a short word of the adapter's closed list.
 */
export class PrepareRefused extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

export interface PaymentProvider {
  readonly name: string;
  /** The account that this process pays from, as `prepare` freezes it. The lane is `<name>/<account>`. */
  readonly account: string;
  capabilities(): ProviderDescriptor;
  /**
   * Pure: builds the request once.
   * @throws PrepareRefused when the payment cannot be expressed. Twice: the same text.
   */
  prepare(payment: CanonicalPayment): PreparedSubmission;
  /** The call that moves money (two phases: makes the inert object). Never throws. */
  submit(prepared: PreparedSubmission, attempt: AttemptContext): Promise<ProviderResult>;
  /** Two phases only: releases the object. Never throws. */
  commit(providerRef: string, attempt: AttemptContext): Promise<ProviderResult>;
  /** Reads only; safe to repeat. Never throws. */
  lookup(refs: LookupRefs): Promise<LookupAnswer>;
  /** Closes connections. Twice: nothing. */
  close(): Promise<void>;
}
