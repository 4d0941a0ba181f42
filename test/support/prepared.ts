import { providerKey, type PaymentId } from '../../src/domain/payment-id.js';
import { associatedData, open, seal } from '../../src/encryption/authenticated-encryption.js';
import { KeyRing } from '../../src/encryption/key-ring.js';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import type { PaymentProvider } from '../../src/providers/payment-provider.js';
import { capabilityClass } from '../../src/providers/provider-descriptor.js';
import { sha1 } from '../../src/platform/sha256.js';
import type { Prepared } from '../../src/submission/begin-submission.store.js';
import { testEncryption } from './builders.js';

const ring = new KeyRing(testEncryption);

/** What arming makes of a payment: its request, built by an engine's adapter and sealed as `testCipher` does. */
export function preparedFor(
  { provider }: { readonly provider: Pick<PaymentProvider, 'prepare' | 'capabilities'> },
  payment: PaymentRow,
): Prepared {
  const key = providerKey(payment.id as PaymentId, 1, sha1);
  const place = (field: string, keyId: string): Buffer =>
    associatedData(payment.tenant_id, payment.id, field, keyId);
  const stored = ring.find(payment.destination_key_id);
  const submission = provider.prepare({
    paymentId: payment.id,
    generation: 1,
    providerKey: key,
    amountMinor: payment.amount,
    currency: payment.currency,
    destination: open(stored.key, place('destination', stored.id), payment.destination).toString(),
    reference: payment.reference,
    description: payment.description,
  });
  const { id, key: sealing } = ring.active;
  return {
    paymentId: payment.id,
    providerKey: key,
    submission,
    capabilityClass: capabilityClass(provider.capabilities()),
    parameters: seal(sealing, place('submission_parameters', id), Buffer.from(submission.parameters)),
    parametersKeyId: id,
  };
}
