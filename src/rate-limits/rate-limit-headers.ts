import type { LimitState } from './rate-limit.js';

/**
 * The two fields of the IETF draft "RateLimit header fields for HTTP" (draft-ietf-httpapi-ratelimit-headers,
 * since -08): structured fields, lists of quoted names with parameters. `q` is the burst and `w` the
 * whole seconds in which that much comes back; `r` is what is left, `t` the whole seconds until more.
 */
export function rateLimitHeaders(states: readonly LimitState[]): Readonly<Record<string, string>> {
  const policies = states.map(({ name, limit }) => {
    const windowS = Math.max(1, Math.ceil(limit.burst / limit.ratePerSecond));
    return `"${name}";q=${limit.burst};w=${windowS}`;
  });
  const now = states.map(
    ({ name, remaining, nextInMs }) => `"${name}";r=${remaining};t=${seconds(nextInMs)}`,
  );
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: now.join(', ') };
}

/** Whole seconds, at least one: nobody is told to come back at once. */
export function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
