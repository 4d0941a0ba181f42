import type { ResultClass } from '../../src/domain/provider-outcome.js';
import type { ProviderResult } from '../../src/providers/payment-provider.js';

/** What an adapter would answer: of this class, with the members that usually go with it. */
export function resultOf(of: ResultClass, members: Partial<ProviderResult> = {}): ProviderResult {
  const isKnown = of === 'accepted';
  const isRefused = of === 'rejected' || of === 'rejected_funds';
  return {
    class: of,
    status: isKnown ? 'succeeded' : isRefused ? 'failed' : null,
    providerRef: isKnown ? 'po_test' : null,
    requestId: 'req_test',
    httpStatus: isKnown ? 201 : isRefused ? 402 : null,
    replayed: false,
    bytesSent: of !== 'not_sent',
    observed: isKnown
      ? { amountMinor: 1_999n, currency: 'EUR', destination: 'acct_test' }
      : { amountMinor: null, currency: null, destination: null },
    code: of,
    retryAfterMs: null,
    foreignBody: null,
    ...members,
  };
}
