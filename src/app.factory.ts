import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { limitApiRequests, shedApiOverload } from './api-limits.js';
import { ApiModule, type ApiParts } from './api.module.js';
import { recordAuditorReads } from './auditor-reads.js';
import { installAuthentication } from './auth/authenticate.js';
import { Authenticator } from './auth/authenticator.js';
import { FailureLimiter } from './auth/failure-limiter.js';
import { IssuerKeys, readKeySet } from './auth/issuer-keys.js';
import { PersonTokens } from './auth/person-token.js';
import type { Config } from './config/config.js';
import { httpServerOptions, installHttpEdges } from './http/http-edges.js';
import { installRequestLog } from './http/request-log.js';
import { authFailuresTotal } from './metrics/metrics.js';
import { installDocumentation, isDocumentationUrl } from './openapi-document.js';
import { monotonicMs } from './platform/clock.js';
import { NestLogger } from './platform/nest-logger.js';
import { countTooLargeEvents } from './webhooks/incoming/too-large-events.js';

/**
 * Builds the API, ready to listen; asks nothing of the database, so it is built without one too.
 * @throws Error with a sentence when a route declares no scope.
 */
export async function createApiApp(parts: ApiParts): Promise<NestFastifyApplication> {
  const { trustedProxies } = parts.config.edge;
  const app = await NestFactory.create<NestFastifyApplication>(
    ApiModule.of(parts),
    // Nothing here is Express middleware: its emulation would cost every request.
    new FastifyAdapter({ ...httpServerOptions(trustedProxies), skipMiddie: true }),
    { bodyParser: false, logger: new NestLogger(parts.log), abortOnError: false },
  );
  const server = app.getHttpAdapter().getInstance();
  shedApiOverload(server, parts);
  installHttpEdges(app);
  installRequestLog(server, parts.log);
  countTooLargeEvents(server, (name) => parts.providers.get(name) !== undefined);
  installAuthentication(server, {
    authenticator: authenticatorOf(parts),
    limiter: new FailureLimiter(),
    isPublicUrl: isDocumentationUrl,
    events: {
      refused: (reason, keyId, request) => {
        authFailuresTotal.add({ reason });
        parts.log.warn({ request_id: request.id, code: reason }, 'login_failed');
      },
      limited: (request) => {
        authFailuresTotal.add({ reason: 'limited' });
        parts.log.warn({ request_id: request.id }, 'login_limited');
      },
      scopeMissing: (scope, principal, request) => {
        authFailuresTotal.add({ reason: 'scope' });
        parts.log.warn(
          { request_id: request.id, tenant_ref: principal.tenantRef, code: scope },
          'scope_refused',
        );
      },
    },
  });
  limitApiRequests(server, parts);
  recordAuditorReads(server, parts);
  installDocumentation(app);
  await app.init();
  return app;
}

/** Keys made for tests open nothing in production, and the other way round. */
function authenticatorOf({ config, keys, database }: ApiParts): Authenticator {
  const mode = config.mode === 'production' ? 'live' : 'test';
  return new Authenticator(database, keys.pepper, mode, monotonicMs, personTokensOf(config));
}

/** People come with tokens of one issuer, if one is configured. */
function personTokensOf({ oidc }: Config): PersonTokens | null {
  if (oidc === null) return null;
  const issuerKeys = new IssuerKeys(() => readKeySet(new URL(oidc.keySetUrl)));
  return new PersonTokens(oidc, issuerKeys.keyFor);
}
