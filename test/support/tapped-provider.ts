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
} from '../../src/providers/payment-provider.js';

type Submit = () => Promise<ProviderResult>;

/**
 * An adapter seen from the engine's side: counts calls under way, and lets a test stand before a
 * call. It changes nothing that goes to the wire.
 */
export class TappedProvider implements PaymentProvider {
  /** Stands around each submit; absent: nothing does. */
  aroundSubmit: ((submit: Submit, attempt: AttemptContext) => Promise<ProviderResult>) | null = null;
  /** Stands around each commit; absent: nothing does. */
  aroundCommit: ((commit: Submit, attempt: AttemptContext) => Promise<ProviderResult>) | null = null;
  /** Stands around each lookup; absent: nothing does. */
  aroundLookup: ((lookup: () => Promise<LookupAnswer>, refs: LookupRefs) => Promise<LookupAnswer>) | null =
    null;
  /** A shorter deadline than the worker's, so that a test need not wait 25 s for it. */
  deadlineMs: number | null = null;
  private underWay = 0;
  /** Most submits under way at one moment. */
  mostUnderWay = 0;
  readonly submits: AttemptContext[] = [];

  constructor(private readonly inner: PaymentProvider) {}

  get callsUnderWay(): number {
    return this.underWay;
  }

  get name(): string {
    return this.inner.name;
  }

  get account(): string {
    return this.inner.account;
  }

  get baseUrl(): string {
    return this.inner.baseUrl;
  }

  get credentialId(): string {
    return this.inner.credentialId;
  }

  capabilities(): ProviderDescriptor {
    return this.inner.capabilities();
  }

  prepare(payment: CanonicalPayment): PreparedSubmission {
    return this.inner.prepare(payment);
  }

  async submit(prepared: PreparedSubmission, attempt: AttemptContext): Promise<ProviderResult> {
    this.submits.push(attempt);
    this.underWay++;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
    const deadlineMs = this.deadlineMs ?? attempt.deadlineMs;
    const submit = (): Promise<ProviderResult> => this.inner.submit(prepared, { ...attempt, deadlineMs });
    try {
      return await (this.aroundSubmit ? this.aroundSubmit(submit, attempt) : submit());
    } finally {
      this.underWay--;
    }
  }

  commit(
    prepared: PreparedSubmission,
    providerRef: string,
    attempt: AttemptContext,
  ): Promise<ProviderResult> {
    const deadlineMs = this.deadlineMs ?? attempt.deadlineMs;
    const commit = (): Promise<ProviderResult> =>
      this.inner.commit(prepared, providerRef, { ...attempt, deadlineMs });
    return this.aroundCommit ? this.aroundCommit(commit, attempt) : commit();
  }

  cancel(providerRef: string, attempt: AttemptContext): Promise<ProviderResult> {
    return this.inner.cancel(providerRef, attempt);
  }

  parseWebhook(
    raw: Buffer,
    headers: WebhookHeaders,
    secrets: readonly string[],
    nowMs: number,
  ): WebhookReading {
    return this.inner.parseWebhook(raw, headers, secrets, nowMs);
  }

  lookup(refs: LookupRefs): Promise<LookupAnswer> {
    const lookup = (): Promise<LookupAnswer> => this.inner.lookup(refs);
    return this.aroundLookup ? this.aroundLookup(lookup, refs) : lookup();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
