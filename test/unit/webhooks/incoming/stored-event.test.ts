import { describe, expect, it } from 'vitest';
import type { ProviderEvent } from '../../../../src/providers/payment-provider.js';
import { openEvent, sealEvent } from '../../../../src/webhooks/incoming/stored-event.js';
import { directCipher, newKeySet } from '../../../support/ciphers.js';
import { resultOf } from '../../../support/results.js';

const cipher = directCipher({ encryption: newKeySet('k1'), digest: newKeySet('k1') });
const place = { provider: 'simulated', account: 'default', eventId: 'evt_1' };
const event: ProviderEvent = {
  eventId: 'evt_1',
  type: 'payout.succeeded',
  occurredAtMs: 1_767_225_600_000,
  providerRef: '12n',
  paymentId: 'pay_x',
  generation: 1,
  providerKey: '77n',
  result: resultOf('accepted', {
    observed: { amountMinor: 999_999_999_999_999n, currency: 'EUR', destination: '5n' },
  }),
  returned: { returnId: '9n', amountMinor: 1n, currency: 'EUR', code: 'closed' },
};

describe('a stored event', () => {
  it('opens as it was sealed: amounts to the last digit, ids that look like amounts as text', async () => {
    const sealed = await sealEvent(cipher, place, event, Buffer.from('{}'));
    expect(await openEvent(cipher, place, sealed)).toEqual(event);
  });

  it('opens at no other place', async () => {
    const sealed = await sealEvent(cipher, place, event, Buffer.from('{}'));
    for (const other of [{ provider: 'b' }, { account: 'b' }, { eventId: 'evt_2' }]) {
      await expect(openEvent(cipher, { ...place, ...other }, sealed)).rejects.toThrow(/does not open/);
    }
  });

  it('keeps at most 4 KiB of what came over the wire, without half a character at the cut', async () => {
    const raw = Buffer.from(`x${'é'.repeat(40_000)}`);
    const { keyId, body } = await sealEvent(cipher, place, event, raw);
    const field = 'foreign_body' as const;
    const at = { tenant: 'webhook:simulated/default', paymentId: 'evt_1', field, keyId, ciphertext: body };
    const text = await cipher.decrypt(at);
    expect(text).toBe(`x${'é'.repeat(2_047)}`);
  });
});
