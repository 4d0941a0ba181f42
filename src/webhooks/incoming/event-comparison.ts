import type { ProviderEvent, ProviderResult } from '../../providers/payment-provider.js';
import type { NewsTarget } from '../../payments/provider-news.service.js';
import type { EventEvidence } from './webhook-inbox.store.js';

/** How news of a provider is held against what was instructed and what is recorded. */

/** A result that says how the object stands. */
export type Standing = ProviderResult & { readonly status: NonNullable<ProviderResult['status']> };

/** True when this word of an object is none against this final state. `returned` was a success. */
export function agreesWith(state: NewsTarget['state'], status: Standing['status']): boolean {
  switch (status) {
    case 'succeeded':
      return state === 'succeeded' || state === 'returned';
    case 'failed':
      return state === 'failed' || state === 'returned';
    case 'pending':
    case 'inert':
      return state === 'succeeded' || state === 'failed' || state === 'returned';
  }
}

/** Only a class that knows the object says how it stands. */
export function standingOf(result: ProviderResult | null): Standing | null {
  if (result === null || result.status === null) return null;
  const isKnown =
    result.class === 'accepted' || result.class === 'rejected' || result.class === 'rejected_funds';
  return isKnown ? { ...result, status: result.status } : null;
}

/** The one object at the provider that the payment is known to be; null: none is known yet. */
export function ourObject(target: NewsTarget): string | null {
  return target.commitTarget ?? target.providerRef;
}

export function isOtherObject(
  target: NewsTarget,
  { providerRef }: Pick<ProviderEvent, 'providerRef'>,
): boolean {
  const ours = ourObject(target);
  return ours !== null && providerRef !== null && providerRef !== ours;
}

/** What an event says of a payment, as a row of evidence; `type` is the provider's word for it. */
export function evidenceOf(
  target: NewsTarget,
  type: string,
  { result, returned, providerRef }: ProviderEvent,
): EventEvidence {
  const of = { paymentId: target.id, generation: target.generation, code: type };
  if (returned) {
    const { returnId, amountMinor, currency, code } = returned;
    return { ...of, code, kind: 'returned', providerRef: returnId, status: null, amountMinor, currency };
  }
  const standing = standingOf(result);
  return {
    ...of,
    kind: standing ? 'told' : 'hint',
    providerRef,
    status: standing?.status ?? null,
    amountMinor: standing?.observed.amountMinor ?? null,
    currency: standing?.observed.currency ?? null,
  };
}
