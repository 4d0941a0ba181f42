import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { EventLoopLag } from '../../../src/http/event-loop-lag.js';
import { MOST_LAG_MS, shedOverload, type ShedCause } from '../../../src/http/shed-overload.js';
import type { Urgency } from '../../../src/http/admission-queue.js';

describe('the lag of the event loop', () => {
  it('is that of the best of three samples: one pause is no overload', () => {
    const lag = new EventLoopLag();
    for (const delayMs of [0, 3_000, 0]) lag.record(delayMs);
    expect(lag.ms).toBe(0);
    for (const delayMs of [900, 700, 800]) lag.record(delayMs);
    expect(lag.ms).toBe(700);
    lag.record(2);
    expect(lag.ms).toBe(2);
  });

  it('is nothing before it was measured, nor when timers are early', () => {
    const lag = new EventLoopLag();
    expect(lag.ms).toBe(0);
    for (const delayMs of [-1, -2, -3]) lag.record(delayMs);
    expect(lag.ms).toBe(0);
  });
});

describe('a process that cannot keep up', () => {
  it.each<[Urgency, number]>([
    ['work', 503],
    ['read', 503],
    ['cancel', 200],
  ])('answers %s with %d', async (urgency, status) => {
    const server = Fastify();
    const shed: ShedCause[] = [];
    const lag = { ms: MOST_LAG_MS + 1 };
    shedOverload(server, {
      queue: { isFull: () => false },
      lag,
      urgencyOf: () => urgency,
      shed: (cause) => void shed.push(cause),
    });
    server.setErrorHandler((error: { status?: number }, _request, reply) =>
      reply.code(error.status ?? 500).send(),
    );
    server.get('/', () => 'done');
    expect((await server.inject('/')).statusCode).toBe(status);
    expect(shed).toEqual(status === 503 ? ['event_loop'] : []);
    lag.ms = MOST_LAG_MS;
    expect((await server.inject('/')).statusCode).toBe(200);
    await server.close();
  });
});
