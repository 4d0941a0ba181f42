import { providerKey, type PaymentId } from '../../src/domain/payment-id.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import type { PaymentProvider } from '../../src/providers/payment-provider.js';
import { capabilityClass } from '../../src/providers/provider-descriptor.js';
import { sha1 } from '../../src/platform/sha256.js';
import type { Prepared } from '../../src/submission/begin-submission.store.js';
import { testCipher } from './builders.js';

/** What arming makes of a payment: its request, built by an engine's adapter and sealed. */
export function preparedFor(
  { provider }: { readonly provider: Pick<PaymentProvider, 'prepare' | 'capabilities'> },
  payment: PaymentRow,
): Prepared {
  const key = providerKey(payment.id as PaymentId, 1, sha1);
  const submission = provider.prepare({
    paymentId: payment.id,
    generation: 1,
    providerKey: key,
    amountMinor: payment.amount,
    currency: payment.currency,
    destination: testCipher.openDestination(payment),
    reference: payment.reference,
    description: payment.description,
  });
  const sealed = testCipher.sealParameters({
    tenantId: payment.tenant_id,
    paymentId: payment.id,
    text: submission.parameters,
  });
  return {
    paymentId: payment.id,
    providerKey: key,
    submission,
    capabilityClass: capabilityClass(provider.capabilities()),
    parameters: sealed.ciphertext,
    parametersKeyId: sealed.keyId,
  };
}
