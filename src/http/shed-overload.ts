import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DomainError } from '../domain/domain-error.js';
import type { AdmissionQueue, Urgency } from './admission-queue.js';
import { withUrgency } from './connection-gate.js';
import type { EventLoopLag } from './event-loop-lag.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Among which requests in progress this one is counted; null: its body arrives, or it is done. */
    countedAs: 'arriving' | 'handled' | null;
  }
}

/** Why a request was turned away, for the metrics. */
export type ShedCause = 'queue_full' | 'too_many' | 'event_loop';

export interface ShedOptions {
  /** Where requests wait for a connection. */
  readonly queue: Pick<AdmissionQueue, 'isFull'>;
  readonly lag: Pick<EventLoopLag, 'ms'>;
  readonly urgencyOf: (request: FastifyRequest) => Urgency;
  readonly shed: (cause: ShedCause, urgency: Urgency) => void;
}

/** Requests whose credential and limits are being looked up, and requests in their handlers. */
export const MOST_IN_PROGRESS = Object.freeze({ arriving: 256, handled: 512 });
/** Timers that are so late for so long mean that every answer is (ms). */
export const MOST_LAG_MS = 500;

/**
 * Turns requests away with 503 `overloaded` before they have cost anything: before their credential is
 * read, and once more before their handler. Whoever was turned away has changed nothing. While its body
 * arrives a request is not counted, so slow senders hold nobody up. Cancels are turned away only when
 * their own queue is full.
 *
 * Call it before the hooks of everybody else, so that these are the first.
 */
export function shedOverload(server: FastifyInstance, options: ShedOptions): void {
  const { queue, lag, urgencyOf, shed } = options;
  const counts = { arriving: 0, handled: 0 };
  const count = (request: FastifyRequest, as: 'arriving' | 'handled' | null): void => {
    if (request.countedAs !== null) counts[request.countedAs]--;
    if (as !== null) counts[as]++;
    request.countedAs = as;
  };
  const causeAgainst = (urgency: Urgency, stage: 'arriving' | 'handled'): ShedCause | null => {
    if (queue.isFull(urgency)) return 'queue_full';
    if (urgency === 'cancel') return null;
    if (counts[stage] >= MOST_IN_PROGRESS[stage]) return 'too_many';
    return lag.ms > MOST_LAG_MS ? 'event_loop' : null;
  };
  const admit = (
    request: FastifyRequest,
    stage: 'arriving' | 'handled',
    next: (error?: Error) => void,
  ): void => {
    // Nobody works for a request without a route.
    if (request.is404) return next();
    const urgency = urgencyOf(request);
    const cause = causeAgainst(urgency, stage);
    if (cause !== null) {
      shed(cause, urgency);
      return next(new DomainError('overloaded'));
    }
    count(request, stage);
    // Looking up who calls is short, and nobody is served before it.
    withUrgency(stage === 'arriving' && urgency === 'work' ? 'read' : urgency, next);
  };
  server.decorateRequest('countedAs', null);
  server.addHook('onRequest', (request, _reply, done) => admit(request, 'arriving', done));
  server.addHook('preParsing', (request, _reply, _payload, done) => {
    count(request, null);
    done();
  });
  server.addHook('preHandler', (request, _reply, done) => admit(request, 'handled', done));
  // Runs for every answer, also of an error, also when nobody is left to read it.
  server.addHook('onSend', (request, _reply, payload, done) => {
    count(request, null);
    done(null, payload);
  });
}
