import type {
  AttemptContext,
  CanonicalPayment,
  LookupAnswer,
  LookupRefs,
  PaymentProvider,
  PreparedSubmission,
  ProviderDescriptor,
  ProviderResult,
} from '../../src/providers/payment-provider.js';

type Submit = () => Promise<ProviderResult>;

/**
 * An adapter seen from the engine's side: counts calls under way, and lets a test stand before a
 * call. It changes nothing that goes to the wire.
 */
export class TappedProvider implements PaymentProvider {
  /** Stands around each submit; absent: nothing does. */
  aroundSubmit: ((submit: Submit, attempt: AttemptContext) => Promise<ProviderResult>) | null = null;
  private underWay = 0;
  /** Most submits under way at one moment. */
  mostUnderWay = 0;
  readonly submits: AttemptContext[] = [];

  constructor(private readonly inner: PaymentProvider) {}

  get name(): string {
    return this.inner.name;
  }

  get account(): string {
    return this.inner.account;
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
    const submit = (): Promise<ProviderResult> => this.inner.submit(prepared, attempt);
    try {
      return await (this.aroundSubmit ? this.aroundSubmit(submit, attempt) : submit());
    } finally {
      this.underWay--;
    }
  }

  commit(providerRef: string, attempt: AttemptContext): Promise<ProviderResult> {
    return this.inner.commit(providerRef, attempt);
  }

  lookup(refs: LookupRefs): Promise<LookupAnswer> {
    return this.inner.lookup(refs);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
