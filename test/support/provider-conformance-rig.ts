import { randomUUID } from 'node:crypto';
import type {
  AttemptContext,
  CanonicalPayment,
  LookupAnswer,
  LookupRefs,
  PaymentProvider,
  ProviderResult,
  WebhookHeaders,
} from '../../src/providers/payment-provider.js';

/**
 * What a call can meet at a provider. `_before`: nothing was executed; `_after`: the money moved
 * and only the answer suffered.
 */
export type Trouble =
  | 'reset_before'
  | 'reset_after'
  | 'silence'
  | 'server_error_before'
  | 'server_error_after'
  | 'stored_server_error_before'
  | 'stored_server_error_after'
  | 'gateway_page_after'
  | 'empty_after'
  | 'broken_body_after'
  | 'cut_body_after'
  | 'unknown_status_after'
  | 'other_amount_after'
  | 'redirect'
  | 'throttled'
  | 'unauthenticated'
  | 'forbidden'
  | 'declined'
  | 'declined_for_funds'
  | 'pending'
  | 'pending_then_failed'
  | 'slow'
  | 'executed_late'
  | 'denies_existence'
  | 'lookup_error';

/** One request of the provider to us, as it came. */
export interface Delivery {
  readonly raw: Buffer;
  readonly headers: WebhookHeaders;
}

/** A provider to be put through the suite, and the judge beside it. */
export interface ProviderRig {
  readonly provider: PaymentProvider;
  /** The same provider with a base URL where nobody listens. */
  readonly unreachable: PaymentProvider;
  /** The same provider with a credential that is unknown there. */
  readonly stranger: PaymentProvider;
  /** The payment's next call of that kind meets this. @throws when the rig cannot arrange it. */
  arrange(paymentId: string, call: 'create' | 'move' | 'lookup', trouble: Trouble): Promise<void>;
  /** Movements of money for a payment, by the provider's own books. */
  charges(paymentId: string): Promise<number>;
  untilCharged(paymentId: string): Promise<unknown>;
  /** Requests about a payment that reached the provider, whatever became of them. */
  requests(paymentId: string): Promise<number>;
  untilRequested(paymentId: string): Promise<unknown>;
  /** The idempotency key of each of those requests that would move, make or stop something; null: none. */
  keysSeen(paymentId: string): Promise<readonly (string | null)[]>;
  /** Signs what the provider tells by itself. */
  readonly webhookSecret: string;
  /** Waits for the first event about a payment. */
  delivery(paymentId: string): Promise<Delivery>;
  close(): Promise<void>;
}

/** A deadline that no test waits for, unless it wants to. */
export const DEADLINE_MS = 10_000;
export const SHORT_DEADLINE_MS = 500;

export function newPayment(changes: Partial<CanonicalPayment> = {}): CanonicalPayment {
  return {
    paymentId: `pay_${randomUUID().replaceAll('-', '')}`,
    generation: 1,
    providerKey: randomUUID(),
    amountMinor: 1_250n,
    currency: 'EUR',
    destination: 'acct_destination',
    reference: null,
    description: null,
    ...changes,
  };
}

export function attemptOf(payment: CanonicalPayment, changes: Partial<AttemptContext> = {}): AttemptContext {
  const { paymentId, generation, providerKey } = payment;
  return {
    paymentId,
    generation,
    attempt: 1,
    providerKey,
    commitTry: 1,
    deadlineMs: DEADLINE_MS,
    mayWrite: () => true,
    ...changes,
  };
}

export function refsOf(payment: CanonicalPayment, changes: Partial<LookupRefs> = {}): LookupRefs {
  const { paymentId, generation, providerKey } = payment;
  return {
    providerRef: null,
    providerKey,
    paymentId,
    generation,
    sentSince: new Date(),
    by: 'any',
    deadlineMs: DEADLINE_MS,
    expected: payment,
    ...changes,
  };
}

/** All calls that a payment takes, and the result of the one that moves the money. */
export async function pay(
  provider: PaymentProvider,
  payment: CanonicalPayment,
  changes: Partial<AttemptContext> = {},
): Promise<ProviderResult> {
  const attempt = attemptOf(payment, changes);
  const prepared = provider.prepare(payment);
  const made = await provider.submit(prepared, attempt);
  if (provider.capabilities().phases === 1 || made.class !== 'accepted' || made.providerRef === null)
    return made;
  return provider.commit(prepared, made.providerRef, attempt);
}

export function codeOf(answer: LookupAnswer): string {
  return answer.kind === 'found' ? answer.result.code : answer.kind;
}
