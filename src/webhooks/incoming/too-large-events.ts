import type { FastifyInstance } from 'fastify';
import { webhookInTotal } from '../../metrics/metrics.js';

/** Counts events that were refused for their size: no handler ever sees them. */
export function countTooLargeEvents(server: FastifyInstance, isProvider: (name: string) => boolean): void {
  server.addHook('onResponse', (request, reply, done) => {
    if (reply.statusCode === 413 && request.routeOptions.config.access?.kind === 'signature') {
      const { provider } = request.params as { readonly provider?: string };
      const isKnown = provider !== undefined && isProvider(provider);
      webhookInTotal.add({ provider: isKnown ? provider : 'unknown', result: 'too_large' });
    }
    done();
  });
}
