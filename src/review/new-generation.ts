import { DomainError } from '../domain/domain-error.js';
import { providerKey, type PaymentId } from '../domain/payment-id.js';
import type { DestinationCipher } from '../encryption/destination-cipher.js';
import type { Sql } from '../persistence/database.js';
import { sha1 } from '../platform/sha256.js';
import { PrepareRefused, type PaymentProvider } from '../providers/payment-provider.js';
import { capabilityClass } from '../providers/provider-descriptor.js';
import { openGeneration } from './new-generation.store.js';
import { findDestinationKey, type LockedPayment, type ResolutionRow } from './resolution.store.js';

export interface Providers {
  get(name: string): PaymentProvider | undefined;
}

/** The next intention towards the provider, under a key of its own: only after proof, by two people. */
export class NewGenerations {
  constructor(
    private readonly providers: Providers,
    private readonly cipher: DestinationCipher,
  ) {}

  /**
   * Reads the keys that `open` needs. Call it before the transaction: inside, it would be a second
   * connection, and people who decide at once would wait for each other's.
   * @throws faults of storage; DomainError `not_found`.
   */
  async warm(sql: Sql, tenantId: string, paymentId: string): Promise<void> {
    const keyId = await findDestinationKey(sql, tenantId, paymentId);
    if (keyId === null) throw new DomainError('not_found');
    await this.cipher.warm(tenantId, [keyId]);
  }

  /**
   * Longest time, in ms, that a lost request may still execute at this provider.
   * @throws DomainError `provider_unknown` when the release does not know it: nobody could tell.
   */
  maxInFlightMs(provider: string): number {
    return this.find(provider).capabilities().maxInFlightMs;
  }

  /**
   * Proves the newest generation not executed and opens the next one without an attempt, in the
   * transaction that moves the payment by T19. The request is built as it is before the first send.
   * @throws DomainError `provider_unknown`; `resolution_not_allowed` when the request cannot be built.
   * Twice: the unique violation of Postgres; the payment's lock and T19's guard keep that away.
   */
  async open(tx: Sql, payment: LockedPayment, resolution: ResolutionRow): Promise<void> {
    const { generation: proven, id: paymentId } = payment;
    if (proven === null || resolution.proof_kind === null) {
      throw new Error(`payment ${paymentId}: a new generation needs an earlier one and its proof`);
    }
    const provider = this.find(payment.provider);
    const key = providerKey(paymentId as PaymentId, proven + 1, sha1);
    const destination = await this.cipher.openDestination(payment);
    const submission = this.prepare(provider, payment, {
      generation: proven + 1,
      providerKey: key,
      destination,
    });
    const sealed = await this.cipher.sealParameters({
      tenantId: payment.tenant_id,
      paymentId,
      text: submission.parameters,
    });
    await openGeneration(tx, {
      paymentId,
      proven,
      proof: { resolutionId: resolution.id, kind: resolution.proof_kind },
      providerKey: key,
      submission,
      capabilityClass: capabilityClass(provider.capabilities()),
      parameters: sealed.ciphertext,
      parametersKeyId: sealed.keyId,
    });
  }

  private find(name: string): PaymentProvider {
    const provider = this.providers.get(name);
    if (!provider) throw new DomainError('provider_unknown');
    return provider;
  }

  private prepare(
    provider: PaymentProvider,
    payment: LockedPayment,
    next: { readonly generation: number; readonly providerKey: string; readonly destination: string },
  ) {
    try {
      return provider.prepare({
        ...next,
        paymentId: payment.id,
        amountMinor: payment.amount,
        currency: payment.currency,
        reference: payment.reference,
        description: payment.description,
      });
    } catch (error) {
      if (!(error instanceof PrepareRefused)) throw error;
      const { state, version } = payment;
      throw new DomainError('resolution_not_allowed', {
        state,
        version,
        extra: { reason: 'prepare_failed' },
        cause: error,
      });
    }
  }
}
