import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DomainError } from '../domain/domain-error.js';
import type { AdmissionQueue, Urgency } from './admission-queue.js';
import type { EventLoopLag } from './event-loop-lag.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** The places that the request has taken; each is given back once. */
    places: { isArriving: boolean; running: Urgency | null } | null;
  }
}

/** Why a request was turned away, for the metrics. */
export type ShedCause = 'queue_full' | 'too_many_arriving' | 'event_loop' | 'waited_too_long';

export interface ShedOptions {
  readonly queue: AdmissionQueue;
  readonly lag: Pick<EventLoopLag, 'ms'>;
  readonly urgencyOf: (request: FastifyRequest) => Urgency;
  readonly shed: (cause: ShedCause, urgency: Urgency) => void;
}

/** Requests whose credential and limits are being looked up: mostly from memory, else one read each. */
export const MOST_ARRIVING = 256;
/** Timers that are so late for so long mean that every answer is. Cancels go on. */
export const MOST_LAG_MS = 500;

/**
 * Turns requests away with 503 `overloaded` before they have cost anything: before their credential is
 * read, when nothing of their kind could be begun soon; and before their handler, when their turn did
 * not come. A request that was turned away has changed nothing. While its body arrives a request holds
 * no place, so slow senders hold nobody up.
 *
 * Call it before the hooks of everybody else, so that these hooks are the first.
 */
export function shedOverload(server: FastifyInstance, options: ShedOptions): void {
  const { queue, lag, urgencyOf, shed } = options;
  let arriving = 0;
  const arrived = ({ places }: FastifyRequest): void => {
    if (places?.isArriving !== true) return;
    places.isArriving = false;
    arriving--;
  };
  const causeAgainst = (urgency: Urgency): ShedCause | null => {
    if (queue.isFull(urgency)) return 'queue_full';
    if (urgency === 'cancel') return null;
    if (lag.ms > MOST_LAG_MS) return 'event_loop';
    return arriving >= MOST_ARRIVING ? 'too_many_arriving' : null;
  };
  server.decorateRequest('places', null);
  server.addHook('onRequest', (request, _reply, done) => {
    if (request.is404) return done();
    const urgency = urgencyOf(request);
    const cause = causeAgainst(urgency);
    if (cause !== null) {
      shed(cause, urgency);
      return done(new DomainError('overloaded'));
    }
    request.places = { isArriving: true, running: null };
    arriving++;
    done();
  });
  server.addHook('preParsing', (request, _reply, _payload, done) => {
    arrived(request);
    done();
  });
  server.addHook('preHandler', async (request, reply) => {
    const { places } = request;
    if (places === null) return;
    const urgency = urgencyOf(request);
    if (!(await turn(queue, urgency, request))) {
      shed('waited_too_long', urgency);
      throw new DomainError('overloaded');
    }
    // The time of a handler counts from its request's first byte; past it the answer has gone out.
    if (reply.sent) queue.leave(urgency);
    else places.running = urgency;
  });
  // Runs for every answer, also of an error, also when nobody is left to read it.
  server.addHook('onSend', (request, _reply, payload, done) => {
    arrived(request);
    const running = request.places?.running ?? null;
    if (running !== null) {
      request.places = null;
      queue.leave(running);
    }
    done(null, payload);
  });
}

/** Waits for a place; whoever hangs up meanwhile leaves the queue. */
async function turn(queue: AdmissionQueue, urgency: Urgency, request: FastifyRequest): Promise<boolean> {
  const { admitted, gone } = queue.enter(urgency);
  if (admitted === true) return true;
  const { socket } = request.raw;
  socket.once('close', gone);
  try {
    return await admitted;
  } finally {
    socket.off('close', gone);
  }
}
