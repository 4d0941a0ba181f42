import type { ProviderStatus, ResultClass } from '../domain/provider-outcome.js';

/**
 * The provider port. An adapter never retries, sleeps, touches our tables or throws an SDK
 * error: every network call returns one result. Money is bigint minor units.
 */

/** A duration in whole milliseconds, or one of two words of the provider's documentation. */
export type Life = number | 'forever' | 'unpublished';

/** The ways to ask a provider what exists there. */
export type LookupPath = 'provider_id' | 'key' | 'reference' | 'list_scan';

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
    readonly by: readonly LookupPath[];
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
  /** Calls per second that the provider declares for the call that moves money. */
  readonly ratePerSecond: number;
  /** Calls per second that it declares for everything of one account together. */
  readonly accountRatePerSecond: number;
  /** How its events are signed; `none`: it sends none that anybody could trust. */
  readonly webhooks: 'none' | 'simulated_v1' | 'standard_webhooks' | 'stripe_v1';
  /** The form of its settlement files. csv: itemized balance activity. */
  readonly settlement: 'none' | 'csv';
  readonly amount: {
    readonly minMinor: bigint;
    readonly maxMinor: bigint;
    /**
     * Currencies whose minor unit at this provider has other decimal digits than in ISO 4217. Empty:
     * none. `prepare` refuses such a currency or converts exactly; it never sends the ISO number.
     */
    readonly exponents: Readonly<Record<string, number>>;
  };
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
  /**
   * 1; 2 when a stored error blocks the first commit's key while the object is still open. Only
   * `commit` reads it: its second key is another one, and the object's state admits one commit.
   */
  readonly commitTry: number;
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
  /** Set for `accepted`, `rejected` and for a lookup's hit: the object's status. A create of two
   * phases that worked is `accepted` and `inert`. */
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
  /**
   * The beginning of an answer that was not understood, at most 4 KiB: evidence for people. null
   * for every other answer. It may hold the destination: never log it, encrypt it at rest.
   */
  readonly foreignBody: string | null;
}

/**
 * The result of a call that was refused on our side before any connection was opened: nothing left.
 * @param code a short word that says which check refused it.
 */
export function notSent(code: string): ProviderResult {
  return {
    class: 'not_sent',
    status: null,
    providerRef: null,
    requestId: null,
    httpStatus: null,
    replayed: false,
    bytesSent: false,
    observed: { amountMinor: null, currency: null, destination: null },
    code,
    retryAfterMs: null,
    foreignBody: null,
  };
}

export interface LookupRefs {
  readonly providerRef: string | null;
  readonly providerKey: string;
  readonly paymentId: string;
  readonly generation: number;
  /** The generation's first send, by the database's clock: where a list scan begins. null: unknown. */
  readonly sentSince: Date | null;
  /** Which way to ask. any: the best one the provider has. */
  readonly by: 'any' | 'reference' | 'list_scan';
  /** Milliseconds for all requests of this lookup together. */
  readonly deadlineMs: number;
  /** Our instruction: a hit is `found` only when all money fields are equal. */
  readonly expected: Pick<CanonicalPayment, 'amountMinor' | 'currency' | 'destination'>;
}

/**
 * found: exactly one object, equal to the instruction. found_other: one, but not our instruction.
 * found_many: several under our key or reference. absent: the provider says it has none, which
 * alone proves nothing; `by` are the ways that said so, at least one. cannot_tell: no understandable
 * answer, or the provider has no such way to ask (codes `no_lookup`, `no_such_lookup`).
 */
export type LookupAnswer =
  | { readonly kind: 'found'; readonly result: ProviderResult }
  | { readonly kind: 'found_other'; readonly result: ProviderResult }
  | { readonly kind: 'found_many'; readonly count: number }
  | { readonly kind: 'absent'; readonly by: readonly LookupPath[] }
  | { readonly kind: 'cannot_tell'; readonly code: string };

/** Money that came back, as an event tells it. `returnId` is the provider's, unique there. */
export interface ReturnedMoney {
  readonly returnId: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly code: string;
}

/**
 * What a provider told by itself, its signature verified. A hint: it names what to ask about. Every
 * member but id and type may be null when the event does not say it.
 */
export interface ProviderEvent {
  /** The provider's id of the event: the same in every delivery of it. */
  readonly eventId: string;
  /** The provider's own word. */
  readonly type: string;
  /** The provider's clock, epoch milliseconds. */
  readonly occurredAtMs: number | null;
  readonly providerRef: string | null;
  readonly paymentId: string | null;
  readonly generation: number | null;
  readonly providerKey: string | null;
  /** What it says of the object, not compared with any instruction: `observed` is there for that. */
  readonly result: ProviderResult | null;
  readonly returned: ReturnedMoney | null;
}

/**
 * unsigned: no signature of the scheme. forged: none that a secret of ours made. too_old, from_future:
 * a right signature of another time. unreadable: a right signature over something that is no event.
 */
export type WebhookReading =
  | { readonly kind: 'event'; readonly event: ProviderEvent }
  | {
      readonly kind: 'refused';
      readonly reason: 'unsigned' | 'forged' | 'too_old' | 'from_future' | 'unreadable';
    };

/** Request headers as Node gives them: names in lower case. */
export type WebhookHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * A payment that the adapter cannot express, said by `prepare` before anything was sent.
 * `code` is a short word of the adapter's closed list.
 */
export class PrepareRefused extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

/** Where an adapter sends and asks: what one target does not have says nothing of another. */
export type ProviderTarget = Pick<PaymentProvider, 'name' | 'account' | 'baseUrl'>;

export interface PaymentProvider {
  readonly name: string;
  /** The account that this process pays from, as `prepare` freezes it. The lane is `<name>/<account>`. */
  readonly account: string;
  /** Where this process calls, as `prepare` freezes it. */
  readonly baseUrl: string;
  /** Names the credential that this process calls with, as `prepare` freezes it; gives none of it away. */
  readonly credentialId: string;
  capabilities(): ProviderDescriptor;
  /**
   * Pure: builds the request once.
   * @throws PrepareRefused when the payment cannot be expressed. Twice: the same text.
   */
  prepare(payment: CanonicalPayment): PreparedSubmission;
  /** The call that moves money (two phases: makes the inert object). Never throws. */
  submit(prepared: PreparedSubmission, attempt: AttemptContext): Promise<ProviderResult>;
  /**
   * Two phases only: releases the object and compares its money with `prepared`. Never throws.
   * Twice under one `commitTry`: the provider's stored answer; the object's state admits one.
   */
  commit(prepared: PreparedSubmission, providerRef: string, attempt: AttemptContext): Promise<ProviderResult>;
  /**
   * Stops an object that was not released. It never makes a payment cancelled: that is said of what
   * was never started. Never throws.
   * @returns `accepted`, `failed`, code `cancelled` when it is stopped now, by this call or before;
   * `rejected` with the provider's code when it may not be stopped any more; else as of a write.
   */
  cancel(providerRef: string, attempt: AttemptContext): Promise<ProviderResult>;
  /**
   * Reads only; safe to repeat. Never throws. Asked for a way that the provider lacks it answers
   * `cannot_tell`, never `absent`.
   */
  lookup(refs: LookupRefs): Promise<LookupAnswer>;
  /**
   * Verifies the signature over the raw bytes with each secret, in constant time, then the time-stamp
   * (at most 300 s old, 60 s ahead), then reads. Pure, never throws. Twice: the same.
   * @param secrets two while one is being replaced. None: nothing is believed.
   * @param nowMs the wall clock, epoch milliseconds.
   */
  parseWebhook(
    raw: Buffer,
    headers: WebhookHeaders,
    secrets: readonly string[],
    nowMs: number,
  ): WebhookReading;
  /** Closes connections. Twice: nothing. */
  close(): Promise<void>;
}
