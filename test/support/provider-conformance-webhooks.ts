import { expect, it } from 'vitest';
import type { ProviderDescriptor, WebhookReading } from '../../src/providers/payment-provider.js';
import { newPayment, pay } from './provider-conformance-rig.js';
import type { Delivery, ProviderRig } from './provider-conformance-rig.js';

/** Promised by webhooks: what the provider tells by itself is signed, and names what it is about. */
export function describeWebhooks(rig: () => ProviderRig, descriptor: ProviderDescriptor): void {
  const read = ({ raw, headers }: Delivery, secrets: readonly string[], nowMs = Date.now()): WebhookReading =>
    rig().provider.parseWebhook(raw, headers, secrets, nowMs);

  it('a payment that succeeded is told of: which, under which key, and with which money', async () => {
    const payment = newPayment();
    const { providerRef } = await pay(rig().provider, payment);
    const delivery = await rig().delivery(payment.paymentId);
    expect(read(delivery, ['whsec_b3RoZXI=', rig().webhookSecret])).toMatchObject({
      kind: 'event',
      event: {
        paymentId: payment.paymentId,
        generation: 1,
        providerKey: descriptor.idempotency.mode === 'none' ? null : payment.providerKey,
        providerRef,
        result: {
          class: 'accepted',
          status: 'succeeded',
          observed: { amountMinor: 1_250n, currency: 'EUR', destination: 'acct_destination' },
        },
        returned: null,
      },
    });
  });

  it('it is refused under another secret, altered, late, from the future or unsigned', async () => {
    const payment = newPayment();
    await pay(rig().provider, payment);
    const delivery = await rig().delivery(payment.paymentId);
    const secrets = [rig().webhookSecret];
    const altered = Buffer.from(delivery.raw.toString('utf8').replace('1250', '9250'), 'utf8');
    const refused = (reason: string): unknown => ({ kind: 'refused', reason });
    expect(read(delivery, ['whsec_b3RoZXI='])).toEqual(refused('forged'));
    expect(read({ ...delivery, raw: altered }, secrets)).toEqual(refused('forged'));
    expect(read(delivery, secrets, Date.now() + 310_000)).toEqual(refused('too_old'));
    expect(read(delivery, secrets, Date.now() - 70_000)).toEqual(refused('from_future'));
    expect(read({ ...delivery, headers: {} }, secrets)).toEqual(refused('unsigned'));
  });
}
