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
import { capabilityClass } from '../provider-descriptor.js';
import { SimulatedClient } from './simulated.client.js';
import type { Exchange } from './simulated.client.js';
import { describeSimulated } from './simulated.descriptor.js';
import type { SimulatedProfile } from './simulated.descriptor.js';
import { SimulatedLookup } from './simulated.lookup.js';
import { mapWrite } from './simulated.mapping.js';
import { instructionOf, parametersOf, referenceOf } from './simulated.request.js';
import { isPayoutId } from './simulated.response.js';
import { readWebhook } from './simulated.webhook.js';

export interface SimulatedProviderOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The account that the key belongs to; the frozen part of every prepared submission. */
  readonly account?: string;
  /** What the account behind the key promises. Default A. */
  readonly profile?: SimulatedProfile;
  /** The name that payments carry. Default: `simulated` for A, `simulated_<profile>` for the others. */
  readonly name?: string;
  /** Rigs that shorten the simulator's key life say so here; the simulator alone may have any margin. */
  readonly keyLifeMs?: number;
  readonly keyMarginMs?: number;
  /** Other differences from the descriptor, for rigs that test a provider that promises less. */
  readonly descriptor?: Partial<ProviderDescriptor>;
  readonly connectTimeoutMs?: number;
  readonly maxSockets?: number;
}

/** The registered name of a profile's provider. */
export function simulatedName(profile: SimulatedProfile): string {
  return profile === 'A' ? 'simulated' : `simulated_${profile.toLowerCase()}`;
}

const ADAPTER_VERSION = '1';
const API_VERSION = 'v1';
/** Above the 200 calls that a lane has in flight per worker, with room for lookups. */
const MAX_SOCKETS = 512;
const CONNECT_TIMEOUT_MS = 3_000;
/** By the number of the commit's try. */
const COMMIT_SUFFIXES = [':commit', ':commit:2'];

/** The adapter that speaks the simulator's protocol over HTTP. Knows nothing of its faults. */
export class SimulatedProvider implements PaymentProvider {
  readonly name: string;
  readonly account: string;
  readonly baseUrl: string;
  readonly credentialId: string;
  private readonly client: SimulatedClient;
  private readonly finder: SimulatedLookup;
  private readonly descriptor: ProviderDescriptor;
  private readonly frozen: Omit<PreparedSubmission, 'parameters' | 'parametersSha256'>;

  constructor(options: SimulatedProviderOptions) {
    const { profile = 'A', keyLifeMs, keyMarginMs, descriptor: changes } = options;
    this.name = options.name ?? simulatedName(profile);
    this.account = options.account ?? 'default';
    this.baseUrl = options.baseUrl;
    // Tells two credentials apart and gives none away.
    this.credentialId = `cred_${sha256Hex(options.apiKey).slice(0, 12)}`;
    this.descriptor = describeSimulated({ profile, keyLifeMs, keyMarginMs, changes });
    this.client = new SimulatedClient({
      baseUrl: options.baseUrl,
      apiKey: options.apiKey,
      connectTimeoutMs: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      maxSockets: options.maxSockets ?? MAX_SOCKETS,
      freshSockets: capabilityClass(this.descriptor) === 'D',
    });
    this.finder = new SimulatedLookup(this.client, this.descriptor.lookup.by);
    this.frozen = {
      adapter: this.name,
      adapterVersion: ADAPTER_VERSION,
      apiVersion: API_VERSION,
      credentialId: this.credentialId,
      account: this.account,
      baseUrl: this.baseUrl,
    };
  }

  capabilities(): ProviderDescriptor {
    return this.descriptor;
  }

  prepare(payment: CanonicalPayment): PreparedSubmission {
    const parameters = parametersOf(payment);
    return { ...this.frozen, parameters, parametersSha256: sha256Hex(parameters) };
  }

  /** Profile T answers `accepted` and `inert`, code `requires_commit`: nothing moved yet. */
  async submit(prepared: PreparedSubmission, attempt: AttemptContext): Promise<ProviderResult> {
    const instruction = instructionOf(prepared.parameters);
    const obstacle = this.obstacleTo(prepared, instruction?.reference, attempt);
    if (obstacle || !instruction) return notSent(obstacle ?? 'prepared_unreadable');
    const exchange = await this.write('/v1/payouts', attempt.providerKey, prepared.parameters, attempt);
    const call = this.descriptor.phases === 1 ? 'move' : 'create';
    return mapWrite(exchange, { ...instruction, providerRef: null }, call);
  }

  /**
   * Releases an inert payout under the key `<provider key>:commit` (keys are bound to an endpoint),
   * at the second try under `<provider key>:commit:2`.
   */
  async commit(
    prepared: PreparedSubmission,
    providerRef: string,
    attempt: AttemptContext,
  ): Promise<ProviderResult> {
    if (this.descriptor.phases !== 2) return notSent('no_commit_phase');
    const instruction = instructionOf(prepared.parameters);
    const obstacle = this.obstacleTo(prepared, instruction?.reference, attempt);
    if (obstacle || !instruction) return notSent(obstacle ?? 'prepared_unreadable');
    if (!isPayoutId(providerRef)) return notSent('provider_ref_unusable');
    const suffix = COMMIT_SUFFIXES[attempt.commitTry - 1];
    if (suffix === undefined) return notSent('commit_try_unusable');
    const path = `/v1/payouts/${providerRef}/commit`;
    const exchange = await this.write(path, `${attempt.providerKey}${suffix}`, '', attempt);
    return mapWrite(exchange, { ...instruction, providerRef }, 'commit');
  }

  /** Profile T: stops a payout that was not committed, under the key `<provider key>:cancel`. */
  async cancel(providerRef: string, attempt: AttemptContext): Promise<ProviderResult> {
    if (this.descriptor.cancel === 'never') return notSent('no_cancel');
    if (!isPayoutId(providerRef)) return notSent('provider_ref_unusable');
    const path = `/v1/payouts/${providerRef}/cancel`;
    const exchange = await this.write(path, `${attempt.providerKey}:cancel`, '', attempt);
    const unknown = { amountMinor: null, currency: null, destination: null };
    return mapWrite(exchange, { ...unknown, reference: referenceOf(attempt), providerRef }, 'cancel');
  }

  lookup(refs: LookupRefs): Promise<LookupAnswer> {
    return this.finder.lookup(refs);
  }

  parseWebhook(
    raw: Buffer,
    headers: WebhookHeaders,
    secrets: readonly string[],
    nowMs: number,
  ): WebhookReading {
    return readWebhook({ scheme: this.descriptor.webhooks, raw, headers, secrets, nowMs });
  }

  close(): Promise<void> {
    this.client.close();
    return Promise.resolve();
  }

  /** Where keys are ignored none is sent: nobody shall take it for a protection. */
  private write(
    path: string,
    key: string,
    body: string,
    { deadlineMs, mayWrite }: AttemptContext,
  ): Promise<Exchange> {
    const headers: Record<string, string> =
      this.descriptor.idempotency.mode === 'none' ? {} : { 'idempotency-key': key };
    return this.client.exchange({ method: 'POST', path, headers, body, deadlineMs, mayWrite });
  }

  /** A generation is frozen: another target, other bytes or another payment's bytes are not sent. */
  private obstacleTo(
    prepared: PreparedSubmission,
    reference: string | undefined,
    attempt: AttemptContext,
  ): string | null {
    const { adapter, apiVersion, account, baseUrl } = this.frozen;
    if (prepared.adapter !== adapter || prepared.apiVersion !== apiVersion) return 'prepared_for_other_api';
    if (prepared.account !== account || prepared.baseUrl !== baseUrl) return 'prepared_for_other_account';
    if (sha256Hex(prepared.parameters) !== prepared.parametersSha256) return 'prepared_altered';
    return reference === referenceOf(attempt) ? null : 'prepared_for_other_payment';
  }
}
