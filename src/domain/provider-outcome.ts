/**
 * What is known about one attempt at a provider, in the words of the design's provider page.
 * Anything that an adapter does not understand is `ambiguous`.
 */
export const RESULT_CLASSES = [
  'accepted',
  'not_sent',
  'throttled',
  'config',
  'in_flight',
  'rejected',
  'rejected_funds',
  'key_mismatch',
  'ambiguous',
] as const;
export type ResultClass = (typeof RESULT_CLASSES)[number];

export const EVIDENCE = ['not_sent', 'accepted', 'refused', 'ambiguous'] as const;
export type Evidence = (typeof EVIDENCE)[number];

/** Which evidence a class of result is. `throttled` and `config` were refused before execution. */
export const EVIDENCE_OF: Readonly<Record<ResultClass, Evidence>> = Object.freeze({
  accepted: 'accepted',
  not_sent: 'not_sent',
  throttled: 'not_sent',
  config: 'not_sent',
  in_flight: 'ambiguous',
  rejected: 'refused',
  rejected_funds: 'refused',
  key_mismatch: 'ambiguous',
  ambiguous: 'ambiguous',
});

/**
 * What became of the provider's object: still open, or one of two ends. `inert`, in two phases
 * only: it exists and moves nothing until it is committed.
 */
export type ProviderStatus = 'inert' | 'pending' | 'succeeded' | 'failed';
