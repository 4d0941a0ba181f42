import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DomainError } from '../domain/domain-error.js';
import type { LimitedCall, LimitName } from './rate-limit.js';
import { rateLimitHeaders, seconds } from './rate-limit-headers.js';
import type { LimitedCaller, RateLimiter } from './rate-limiter.js';

export interface LimitRequestsOptions {
  readonly limiter: Pick<RateLimiter, 'take'>;
  /** Who is counted; null: the route asks for no credential and is not limited. */
  readonly callerOf: (request: FastifyRequest) => LimitedCaller | null;
  readonly callOf: (request: FastifyRequest) => LimitedCall;
  readonly refused: (name: LimitName, request: FastifyRequest) => void;
}

/**
 * Counts every request of a caller that is known, before its body is read: call after the hook that
 * authenticates. Every answer from there on says what is left; an empty bucket is 429 `rate_limited`
 * with Retry-After, and uses up no idempotency key, because nobody has read one.
 */
export function limitRequests(server: FastifyInstance, options: LimitRequestsOptions): void {
  server.addHook('onRequest', async (request, reply) => {
    const caller = options.callerOf(request);
    if (caller === null) return;
    const { kind, states } = await options.limiter.take(caller, options.callOf(request));
    reply.headers(rateLimitHeaders(states));
    const last = states.at(-1);
    if (kind === 'admitted' || last === undefined) return;
    options.refused(last.name, request);
    throw new DomainError('rate_limited', { retryAfterS: seconds(last.nextInMs) });
  });
}
