import { CLASS_RULES } from '../domain/submission-policy.js';
import type { Sql } from '../persistence/database.js';
import {
  PrepareRefused,
  type PaymentProvider,
  type PreparedSubmission,
} from '../providers/payment-provider.js';
import { capabilityClass } from '../providers/provider-descriptor.js';
import type { SubmissionCipher } from './arming.service.js';
import type { OpenOutcome } from './open-outcome.store.js';
import { resendUnknown } from './resend.store.js';
import type { SubmissionEvents } from './submission-events.js';
import type { WorkerLease } from './worker-lease.js';

/** Asks the statement of rule 7 whether an unknown payment may be sent again, by the adapter as it is now. */
export class Resender {
  constructor(
    private readonly sql: Sql,
    private readonly lease: WorkerLease,
    private readonly cipher: SubmissionCipher,
    private readonly events: SubmissionEvents,
  ) {}

  /**
   * T15 under the same key, if every condition holds.
   * @returns true when the next attempt is open. @throws faults of storage. Twice: false.
   */
  async resend(provider: PaymentProvider, payment: OpenOutcome): Promise<boolean> {
    if (payment.capabilityClass === null || !CLASS_RULES[payment.capabilityClass].resends) return false;
    const target = await this.presentTarget(provider, payment);
    if (!target) return false;
    const { idempotency, lookup } = provider.capabilities();
    const opened = await resendUnknown(this.sql, payment.lane, this.lease.id, payment.id, {
      capabilityClass: capabilityClass(provider.capabilities()),
      adapter: target.adapter,
      apiVersion: target.apiVersion,
      account: target.account,
      baseUrl: target.baseUrl,
      credentialId: idempotency.scope === 'account' ? null : target.credentialId,
      readsAreStrong: lookup.consistency === 'strong',
    });
    if (opened) this.events.moved({ from: 'unknown', to: 'submitting', cause: 'resend' });
    return opened;
  }

  /** Where the adapter of this process would send the payment today; null when it would not. */
  private async presentTarget(
    provider: PaymentProvider,
    payment: OpenOutcome,
  ): Promise<PreparedSubmission | null> {
    if (payment.generation === null || payment.providerKey === null) return null;
    try {
      return provider.prepare({
        paymentId: payment.id,
        generation: payment.generation,
        providerKey: payment.providerKey,
        amountMinor: payment.amount,
        currency: payment.currency,
        destination: await this.cipher.openDestination({ ...payment, tenant_id: payment.tenantId }),
        reference: payment.reference,
        description: payment.description,
      });
    } catch (error) {
      // It was expressed once; that it cannot be any more means that something changed.
      if (!(error instanceof PrepareRefused)) this.events.fault('resend', error);
      return null;
    }
  }
}
