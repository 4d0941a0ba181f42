import type {
  AttemptContext,
  CanonicalPayment,
  LookupAnswer,
  ProviderResult,
} from '../../src/providers/payment-provider.js';
import type { StripePaymentIntents } from '../../src/providers/stripe/stripe.adapter.js';

/** How often a worker that died is started again here. */
const MOST_LIVES = 20;

/**
 * A worker that dies with every lost answer and starts again, by the rules for two phases: a create may
 * repeat; the one commit target is stored before the first commit; after an ambiguous commit the target
 * is read by id, and committed again only while that read shows it open. It keeps nothing but what a
 * database would: the target.
 */
export class TwoPhaseWorker {
  private target: string | null = null;
  private attempt = 0;

  constructor(
    private readonly provider: StripePaymentIntents,
    private readonly payment: CanonicalPayment,
  ) {}

  /** Lives until the provider said how it ended. */
  async run(): Promise<ProviderResult> {
    for (let life = 0; life < MOST_LIVES; life++) {
      const end = await this.live();
      if (end) return end;
    }
    throw new Error('the payment did not come to an end');
  }

  private async live(): Promise<ProviderResult | null> {
    const prepared = this.provider.prepare(this.payment);
    if (this.target === null) {
      const made = await this.provider.submit(prepared, this.context());
      if (made.class !== 'accepted')
        return made.class === 'ambiguous' || made.class === 'not_sent' ? null : made;
      this.target = made.providerRef;
      return null;
    }
    const seen = await this.read(this.target);
    if (seen.kind === 'found' && seen.result.status !== 'inert') return seen.result;
    if (seen.kind !== 'found') return null;
    const committed = await this.provider.commit(prepared, this.target, this.context());
    return ['accepted', 'rejected', 'rejected_funds'].includes(committed.class) ? committed : null;
  }

  private read(providerRef: string): Promise<LookupAnswer> {
    return this.provider.lookup({
      ...this.payment,
      providerRef,
      sentSince: null,
      by: 'any',
      deadlineMs: 5_000,
      expected: this.payment,
    });
  }

  private context(): AttemptContext {
    const { paymentId, generation, providerKey } = this.payment;
    this.attempt++;
    return {
      paymentId,
      generation,
      providerKey,
      attempt: this.attempt,
      commitTry: 1,
      deadlineMs: 5_000,
      mayWrite: () => true,
    };
  }
}
