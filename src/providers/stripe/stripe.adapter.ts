import type Stripe from 'stripe';
import { monotonicMs } from '../../platform/clock.js';
import { sha256Hex } from '../../platform/sha256.js';
import { notSent } from '../payment-provider.js';
import type {
  AttemptContext,
  CanonicalPayment,
  LookupAnswer,
  LookupRefs,
  PaymentProvider,
  PreparedSubmission,
  ProviderDescriptor,
  ProviderResult,
  WebhookHeaders,
  WebhookReading,
} from '../payment-provider.js';
import { STRIPE_API_VERSION, StripeClient } from './stripe.client.js';
import type { StripeExchange } from './stripe.client.js';
import { DESCRIPTORS } from './stripe.descriptor.js';
import { StripeLookup } from './stripe.lookup.js';
import { mapWrite } from './stripe.mapping.js';
import type { Expected } from './stripe.verdict.js';
import { isIdOf } from './stripe.object.js';
import type { StripeResource } from './stripe.object.js';
import { AUTHENTICATION_REQUIRED, UNEXPECTED_STATE } from './stripe.refusals.js';
import { instructionOf, parametersOf } from './stripe.request.js';
import type { Instruction } from './stripe.request.js';
import { readWebhook } from './stripe.webhook.js';

export interface StripeProviderOptions {
  readonly apiKey: string;
  /** The account that the key belongs to, `acct_…`; frozen into every prepared submission. */
  readonly account: string;
  /** Default: Stripe. Another address is for stand-ins. */
  readonly baseUrl?: string;
  readonly connectTimeoutMs?: number;
  readonly maxSockets?: number;
}

/** Destinations `acct_…`: transfers to connected accounts, one call each. */
export const STRIPE = 'stripe';
/** Destinations `pm_…` and `cus_…:pm_…`: PaymentIntents, made inert and then confirmed off-session. */
export const STRIPE_INTENTS = 'stripe_intents';

const STRIPE_URL = 'https://api.stripe.com';
const ADAPTER_VERSION = '1';
/** Connect < SDK < the deadline of a call (25 s) < the grace of a worker. */
const CONNECT_TIMEOUT_MS = 3_000;
const SDK_TIMEOUT_MS = 20_000;
/** Above the 200 calls that a lane has in flight per worker, with room for lookups. */
const MAX_SOCKETS = 512;
/** By `commitTry`: the second key is for a stored error while the object is still open. */
const COMMIT_SUFFIXES = [':commit', ':commit:2'];

type SdkCall = (stripe: Stripe, options: Stripe.RequestOptions) => Promise<unknown>;

/** Everything that the two providers share: one resource each, one transport each. */
abstract class StripeProvider implements PaymentProvider {
  readonly account: string;
  readonly baseUrl: string;
  readonly credentialId: string;
  protected readonly livemode: boolean;
  private readonly client: StripeClient;
  private readonly lookups: StripeLookup;
  private readonly frozen: Omit<PreparedSubmission, 'parameters' | 'parametersSha256'>;

  /** @throws Error for a key that does not say its mode: answers could not be told apart. */
  protected constructor(
    readonly name: string,
    protected readonly resource: StripeResource,
    options: StripeProviderOptions,
  ) {
    this.baseUrl = options.baseUrl ?? STRIPE_URL;
    this.account = options.account;
    // Tells two credentials apart and gives none away.
    this.credentialId = `cred_${sha256Hex(options.apiKey).slice(0, 12)}`;
    this.livemode = isLiveKey(options.apiKey);
    this.client = new StripeClient({
      baseUrl: this.baseUrl,
      apiKey: options.apiKey,
      connectTimeoutMs: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      sdkTimeoutMs: SDK_TIMEOUT_MS,
      maxSockets: options.maxSockets ?? MAX_SOCKETS,
    });
    this.lookups = new StripeLookup(this.client, resource, this.livemode);
    this.frozen = {
      adapter: name,
      adapterVersion: ADAPTER_VERSION,
      apiVersion: STRIPE_API_VERSION,
      credentialId: this.credentialId,
      account: this.account,
      baseUrl: this.baseUrl,
    };
  }

  capabilities(): ProviderDescriptor {
    return DESCRIPTORS[this.resource];
  }

  prepare(payment: CanonicalPayment): PreparedSubmission {
    const parameters = parametersOf(payment, this.resource);
    return { ...this.frozen, parameters, parametersSha256: sha256Hex(parameters) };
  }

  abstract submit(prepared: PreparedSubmission, attempt: AttemptContext): Promise<ProviderResult>;
  abstract commit(
    prepared: PreparedSubmission,
    providerRef: string,
    attempt: AttemptContext,
  ): Promise<ProviderResult>;
  abstract cancel(providerRef: string, attempt: AttemptContext): Promise<ProviderResult>;

  lookup(refs: LookupRefs): Promise<LookupAnswer> {
    return this.lookups.lookup(refs);
  }

  protected readObject(expected: Expected, deadlineMs: number): Promise<LookupAnswer> {
    return this.lookups.read(expected.providerRef ?? '', deadlineMs, expected);
  }

  parseWebhook(
    raw: Buffer,
    headers: WebhookHeaders,
    secrets: readonly string[],
    nowMs: number,
  ): WebhookReading {
    return readWebhook({ raw, headers, secrets, nowMs }, this.livemode, this.resource);
  }

  close(): Promise<void> {
    return this.client.close();
  }

  /** One request under a key of its own. Without one the SDK would make up a new key each time. */
  protected write(
    attempt: AttemptContext,
    idempotencyKey: string,
    request: SdkCall,
  ): Promise<StripeExchange> {
    return this.client.exchange((stripe) => request(stripe, { idempotencyKey }), attempt);
  }

  /** A generation is frozen: another target, other bytes or another payment's bytes are not sent. */
  protected read(prepared: PreparedSubmission, attempt: AttemptContext): Frozen | string {
    const { adapter, apiVersion, account, baseUrl } = this.frozen;
    if (prepared.adapter !== adapter || prepared.apiVersion !== apiVersion) return 'prepared_for_other_api';
    if (prepared.account !== account || prepared.baseUrl !== baseUrl) return 'prepared_for_other_account';
    if (sha256Hex(prepared.parameters) !== prepared.parametersSha256) return 'prepared_altered';
    const instruction = instructionOf(prepared.parameters);
    if (instruction?.resource !== this.resource) return 'prepared_unreadable';
    const { paymentId, generation, providerKey } = instruction;
    const isOurs = paymentId === attempt.paymentId && generation === attempt.generation;
    return isOurs && providerKey === attempt.providerKey ? instruction : 'prepared_for_other_payment';
  }

  protected expected(instruction: Instruction, providerRef: string | null): Expected {
    return { ...instruction, livemode: this.livemode, money: instruction, providerRef };
  }
}

type Frozen = Instruction & { readonly body: object };

/** Transfers to connected accounts. Idempotent by key, with strong lookups. */
export class StripeTransfers extends StripeProvider {
  constructor(options: StripeProviderOptions) {
    super(STRIPE, 'transfer', options);
  }

  async submit(prepared: PreparedSubmission, attempt: AttemptContext): Promise<ProviderResult> {
    const frozen = this.read(prepared, attempt);
    if (typeof frozen === 'string') return notSent(frozen);
    const exchange = await this.write(attempt, attempt.providerKey, (stripe, options) =>
      stripe.transfers.create(frozen.body as Stripe.TransferCreateParams, options),
    );
    return mapWrite(exchange, this.expected(frozen, null), 'move');
  }

  commit(): Promise<ProviderResult> {
    return Promise.resolve(notSent('no_commit_phase'));
  }

  cancel(): Promise<ProviderResult> {
    return Promise.resolve(notSent('no_cancel'));
  }
}

/** PaymentIntents. The object's own state admits one confirmation, whatever becomes of keys. */
export class StripePaymentIntents extends StripeProvider {
  constructor(options: StripeProviderOptions) {
    super(STRIPE_INTENTS, 'payment_intent', options);
  }

  /** Answers `accepted` and `inert`, code `requires_confirmation`: nothing moved yet. */
  async submit(prepared: PreparedSubmission, attempt: AttemptContext): Promise<ProviderResult> {
    const frozen = this.read(prepared, attempt);
    if (typeof frozen === 'string') return notSent(frozen);
    const exchange = await this.write(attempt, attempt.providerKey, (stripe, options) =>
      stripe.paymentIntents.create(frozen.body as Stripe.PaymentIntentCreateParams, options),
    );
    return mapWrite(exchange, this.expected(frozen, null), 'create');
  }

  /**
   * Confirms off-session, without naming a method: a declined object has lost its own, so that no
   * second confirmation can charge it. A decline for want of the customer becomes `rejected` only
   * once the object is stopped; else it stays `ambiguous`. One that is not in a state for it is read.
   */
  async commit(
    prepared: PreparedSubmission,
    providerRef: string,
    attempt: AttemptContext,
  ): Promise<ProviderResult> {
    const startedAtMs = monotonicMs();
    const frozen = this.read(prepared, attempt);
    if (typeof frozen === 'string') return notSent(frozen);
    if (!isIdOf(this.resource, providerRef)) return notSent('provider_ref_unusable');
    const suffix = COMMIT_SUFFIXES[attempt.commitTry - 1];
    if (suffix === undefined) return notSent('commit_try_unusable');
    const exchange = await this.write(attempt, `${attempt.providerKey}${suffix}`, (stripe, options) =>
      stripe.paymentIntents.confirm(providerRef, { off_session: true }, options),
    );
    const expected = this.expected(frozen, providerRef);
    const result = mapWrite(exchange, expected, 'commit');
    const deadlineMs = attempt.deadlineMs - (monotonicMs() - startedAtMs);
    if (result.code === UNEXPECTED_STATE) return this.settledByReading(result, expected, deadlineMs);
    if (result.class !== 'ambiguous' || result.code !== AUTHENTICATION_REQUIRED) return result;
    const stopped = await this.cancel(providerRef, { ...attempt, deadlineMs });
    const isStopped = stopped.class === 'accepted' && stopped.status === 'failed';
    return isStopped
      ? { ...result, class: 'rejected', status: 'failed', providerRef, foreignBody: null }
      : result;
  }

  /**
   * Its key names the attempt: a stored error of one would block every later one. Refused, the object is
   * read: it may have been stopped before.
   */
  async cancel(providerRef: string, attempt: AttemptContext): Promise<ProviderResult> {
    const startedAtMs = monotonicMs();
    if (!isIdOf(this.resource, providerRef)) return notSent('provider_ref_unusable');
    const key = `${attempt.providerKey}:cancel:${attempt.attempt}`;
    const exchange = await this.write(attempt, key, (stripe, options) =>
      stripe.paymentIntents.cancel(providerRef, {}, options),
    );
    const { paymentId, generation, providerKey } = attempt;
    const names = { paymentId, generation, providerKey, providerRef };
    const { resource, livemode } = this;
    const expected: Expected = { ...names, resource, livemode, money: null };
    const result = mapWrite(exchange, expected, 'cancel');
    if (result.code !== UNEXPECTED_STATE) return result;
    const deadlineMs = attempt.deadlineMs - (monotonicMs() - startedAtMs);
    const seen = await this.readBack(expected, deadlineMs);
    return seen?.code === 'cancelled' ? { ...seen, class: 'accepted' } : result;
  }

  /** "Not in a state for that" says nothing of the money; what the object is now does, unless it is open. */
  private async settledByReading(
    result: ProviderResult,
    expected: Expected,
    deadlineMs: number,
  ): Promise<ProviderResult> {
    const seen = await this.readBack(expected, deadlineMs);
    return seen === null || seen.status === 'inert' ? result : seen;
  }

  private async readBack(expected: Expected, deadlineMs: number): Promise<ProviderResult | null> {
    const answer = await this.readObject(expected, deadlineMs);
    return answer.kind === 'found' ? answer.result : null;
  }
}

/** The mode that a key says of itself (docs.stripe.com/keys). */
export function isLiveKey(apiKey: string): boolean {
  const mode = /^[sr]k_(live|test)_/.exec(apiKey)?.[1];
  if (mode === undefined)
    throw new Error('The key for Stripe does not begin with sk_live_, rk_live_, sk_test_ or rk_test_.');
  return mode === 'live';
}
