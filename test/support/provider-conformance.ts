import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProviderDescriptor } from '../../src/providers/payment-provider.js';
import { capabilityClass, validateDescriptor } from '../../src/providers/provider-descriptor.js';
import { describeNoKey, describeOneKey } from './provider-conformance-keys.js';
import { describeLookups, describeNoLookup } from './provider-conformance-lookups.js';
import { describeOnePhase, describeTwoPhases } from './provider-conformance-phases.js';
import { describeNotSent, describeResults } from './provider-conformance-results.js';
import { describeWebhooks } from './provider-conformance-webhooks.js';
import type { ProviderRig } from './provider-conformance-rig.js';

export type { ProviderRig, Trouble } from './provider-conformance-rig.js';

/**
 * The suite that every adapter passes. Titles of its parts name the promise of the descriptor that is
 * put to the test; a part that a descriptor does not promise is replaced by its opposite.
 * @param descriptor what the adapter claims; the rig's provider must claim the same.
 */
export function providerConformance(
  title: string,
  descriptor: ProviderDescriptor,
  open: () => Promise<ProviderRig>,
): void {
  describe(`${title}, class ${capabilityClass(descriptor)}`, () => {
    let opened: ProviderRig;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());
    const rig = (): ProviderRig => opened;

    it('claims what is put to the test here, and no contradiction', () => {
      const claimed = rig().provider.capabilities();
      expect(claimed).toEqual(descriptor);
      expect(() => validateDescriptor('x', claimed, { smallMarginAllowed: false })).not.toThrow();
    });

    const { idempotency, lookup, phases } = descriptor;
    describe('the classes of result', () => describeResults(rig, descriptor));
    describe('not_sent', () => describeNotSent(rig));
    describe(`idempotency.mode ${idempotency.mode}`, () =>
      idempotency.mode === 'none' ? describeNoKey(rig) : describeOneKey(rig));
    describe(`lookup.by ${lookup.by.join(', ') || 'nothing'}`, () =>
      lookup.by.length === 0 ? describeNoLookup(rig) : describeLookups(rig, descriptor));
    describe(`phases ${phases}, cancel ${descriptor.cancel}`, () =>
      phases === 1 ? describeOnePhase(rig) : describeTwoPhases(rig));
    if (descriptor.webhooks !== 'none') {
      describe(`webhooks ${descriptor.webhooks}`, () => describeWebhooks(rig, descriptor));
    }
  });
}
