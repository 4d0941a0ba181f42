import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifyHttpOptions,
  RawServerDefault,
} from 'fastify';
import { DomainError } from '../domain/domain-error.js';
import { AllowedMethods } from './allowed-methods.js';
import { installBodyParser, MAX_BODY_BYTES } from './body-parser.js';
import { answerClientError, answerExpectation } from './client-error.js';
import { keepRoomForConnections } from './connection-room.js';
import { ProblemFilter } from './problem.filter.js';
import { headersOfEveryAnswer, newRequestId } from './request-id.js';
import { SchemaPipe } from './schema.pipe.js';

/** Times in milliseconds. Each inner limit is smaller than the outer one that waits for it. */
export const HTTP_LIMITS = Object.freeze({
  /** From the first byte of a request to its last. Fastify's own default is no limit. */
  requestMs: 10_000,
  /** From the first byte to the end of the headers; must lie below `requestMs` to have an effect. */
  headersMs: 5_000,
  /** How often Node looks for connections past these two. */
  checkMs: 1_000,
  /** A handler's whole work: above the 8 s of a transaction, below the 30 s of a client. */
  handlerMs: 10_000,
  /** Above the 60 s that proxies keep an idle connection, so that the proxy closes first. */
  keepAliveMs: 75_000,
  /** A connection on which nothing moves, though an answer waits to be read: above the handler's limit. */
  stalledMs: 20_000,
  connections: 2_000,
  headerBytes: 16 * 1024,
  /** Longest request target: far above our longest query, far below the header limit. */
  urlChars: 4_096,
  /** Longest part of a path; an id of ours has 36 characters. */
  pathParamChars: 100,
});

/**
 * The options that FastifyAdapter has to be built with: limits, request ids, and our answers for
 * errors that happen before Fastify has a request or a route.
 * @param trustProxy addresses or networks of proxies whose X-Forwarded-For counts; false or empty: none.
 */
export function httpServerOptions(
  trustProxy: false | readonly string[],
): FastifyHttpOptions<RawServerDefault> {
  return {
    trustProxy: trustProxy === false || trustProxy.length === 0 ? false : [...trustProxy],
    genReqId: newRequestId,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: HTTP_LIMITS.requestMs,
    handlerTimeout: HTTP_LIMITS.handlerMs,
    connectionTimeout: HTTP_LIMITS.stalledMs,
    keepAliveTimeout: HTTP_LIMITS.keepAliveMs,
    // Our own hook refuses while closing, in our own form.
    return503OnClosing: false,
    routerOptions: { maxParamLength: HTTP_LIMITS.pathParamChars },
    http: {
      headersTimeout: HTTP_LIMITS.headersMs,
      connectionsCheckingInterval: HTTP_LIMITS.checkMs,
      maxHeaderSize: HTTP_LIMITS.headerBytes,
      // Node would answer a missing Host header itself, without a body; our hook does.
      requireHostHeader: false,
    },
    clientErrorHandler: answerClientError,
    frameworkErrors: answerRouterError,
  };
}

/** The router refuses a URL before a path is known, so there are no methods to allow. */
const routerErrors = new ProblemFilter(new AllowedMethods());
function answerRouterError(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  routerErrors.answer(error, request, reply);
}

/**
 * Installs what every route has in common: headers of every answer, refusals before routing, the
 * body, validation by schema, and the one form of errors. Call once, after the application was
 * created on `httpServerOptions` with `bodyParser: false`, and before any route is registered.
 */
export function installHttpEdges(app: NestFastifyApplication): void {
  const fastify = app.getHttpAdapter().getInstance();
  const allowedMethods = new AllowedMethods();
  let isClosing = false;
  fastify.addHook('onRoute', (route) => allowedMethods.add(route.url, route.method));
  fastify.addHook('preClose', (done) => {
    isClosing = true;
    endWhatBecomesIdle(fastify.server);
    done();
  });
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.headers(headersOfEveryAnswer(request.id));
    if (isClosing) reply.header('Connection', 'close');
    done(isClosing ? new DomainError('shutting_down') : refusalOf(request));
  });
  fastify.decorateRequest('hasBegun', false);
  fastify.addHook('preHandler', (request, _reply, done) => {
    request.hasBegun = true;
    done();
  });
  fastify.server.maxConnections = HTTP_LIMITS.connections;
  keepRoomForConnections(fastify.server, HTTP_LIMITS.connections);
  fastify.server.on('checkExpectation', answerExpectation);
  installBodyParser(fastify);
  app.useGlobalFilters(new ProblemFilter(allowedMethods));
  app.useGlobalPipes(new SchemaPipe());
}

/** While closing (ms): soon beside the seconds that a stop may take. */
const CLOSE_IDLE_EVERY_MS = 100;

/**
 * A server that closes ends the connections that are idle then. One whose last answer was under way
 * would hold the process for its whole keep-alive, past the kill of the platform.
 */
function endWhatBecomesIdle(server: FastifyInstance['server']): void {
  const timer = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  timer.unref();
  server.once('close', () => clearInterval(timer));
}

function refusalOf(request: FastifyRequest): DomainError | undefined {
  const { url = '', httpVersion, headers } = request.raw;
  if (url.length > HTTP_LIMITS.urlChars) return new DomainError('uri_too_long');
  if (url.includes('%') && !decodes(url)) return new DomainError('malformed_url');
  // 0.9 has no headers, so what came with some was something else.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return new DomainError('malformed_request');
  if (httpVersion === '1.1' && headers.host === undefined) return new DomainError('malformed_request');
  return undefined;
}

/** The router checks the path alone, and the query's parser keeps what does not decode as it is. */
function decodes(url: string): boolean {
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}
