import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DomainError } from '../domain/domain-error.js';
import { parseStrictJson } from './strict-json.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler gets the bytes: a signature is verified over them before anything is parsed. */
    rawBody?: boolean;
  }
}

/** Largest request body, in bytes. */
export const MAX_BODY_BYTES = 16 * 1024;

/** Largest body of a route that gets the bytes: an event of a provider. */
export const MAX_RAW_BODY_BYTES = 64 * 1024;

/** The charset may be left out; JSON is UTF-8 and nothing else. */
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

/**
 * Replaces every body parser of Fastify by one. A handler sees undefined when the body is empty,
 * the bytes when its route asks for them, else what `parseStrictJson` gives. It runs after every
 * `onRequest` hook, so whoever is not authenticated gets 401 and costs no parsing.
 *
 * Refuses with `payload_too_large` (through Fastify's own error) before it has read the rest,
 * `unsupported_media_type`, or as `parseStrictJson`.
 */
export function installBodyParser(fastify: FastifyInstance): void {
  fastify.addHook('onRoute', (route) => {
    if (route.config?.rawBody === true) route.bodyLimit = MAX_RAW_BODY_BYTES;
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser<Buffer>(
    '*',
    { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES },
    (request, body, done) => {
      try {
        done(null, readBody(request, body));
      } catch (error) {
        done(error as Error);
      }
    },
  );
}

function readBody(request: FastifyRequest, body: Buffer): unknown {
  // Without a route there is nobody to read the body, and the answer is 404 whatever it holds.
  if (body.length === 0 || request.is404) return undefined;
  if (request.routeOptions.config.rawBody === true) return body;
  const type = request.headers['content-type'] ?? '';
  if (request.headers['content-encoding'] !== undefined || !JSON_TYPE.test(type)) {
    throw new DomainError('unsupported_media_type');
  }
  return parseStrictJson(body);
}
