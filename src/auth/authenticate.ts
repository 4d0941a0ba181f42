import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import { assert } from '../domain/assert.js';
import { DomainError } from '../domain/domain-error.js';
import { OutcomeUnknown, StorageUnavailable } from '../persistence/database-errors.js';
import type { AuthFailure, Authenticator, Principal } from './authenticator.js';
import { readCredential } from './credential.js';
import type { FailureLimiter } from './failure-limiter.js';
import { IssuerUnavailable } from './issuer-keys.js';
import type { RouteAccess, Scope } from './scopes.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route; a route without it stops the start-up. */
    access?: RouteAccess;
  }
  interface FastifyRequest {
    /** Set before the handler of every route with a scope; null on public routes. */
    principal: Principal | null;
  }
}

/** What the security log and the metrics hear. */
export interface AuthEvents {
  refused(reason: AuthFailure, keyId: string | null, request: FastifyRequest): void;
  /** Too many failures: the credential was not looked at. */
  limited(request: FastifyRequest): void;
  scopeMissing(scope: Scope, principal: Principal, request: FastifyRequest): void;
}

export interface AuthenticationOptions {
  readonly authenticator: Authenticator;
  readonly limiter: FailureLimiter;
  readonly events: AuthEvents;
  /** Routes of other packages that anybody may read: the documentation. */
  readonly isPublicUrl: (url: string) => boolean;
}

/**
 * Asks for a credential before the body of a request is read, so that nobody learns from a 400
 * what only a caller may know, and refuses to start with a route that names no scope.
 * @throws Error from the registration of such a route, with a sentence that names it.
 */
export function installAuthentication(server: FastifyInstance, options: AuthenticationOptions): void {
  server.decorateRequest('principal', null);
  server.addHook('onRoute', (route) => requireAccess(route, options.isPublicUrl));
  server.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.access;
    // Unmatched requests end in 404 or 405 and reveal nothing; a signature is judged with its body.
    if (request.is404 || access === undefined || access.kind !== 'scope') return;
    request.principal = await admit(request, access.scope, options);
  });
}

async function admit(
  request: FastifyRequest,
  scope: Scope,
  { authenticator, limiter, events }: AuthenticationOptions,
): Promise<Principal> {
  const credential = readCredential(authorizationLines(request.raw.rawHeaders));
  const caller = { address: request.ip, credential };
  const waitMs = limiter.waitMs(caller);
  if (waitMs > 0) {
    events.limited(request);
    throw new DomainError('rate_limited', { retryAfterS: Math.ceil(waitMs / 1_000) });
  }
  const answer = await authenticator.check(credential).catch(asUnavailable);
  if (answer.kind === 'refused') {
    limiter.failed(caller);
    events.refused(answer.reason, answer.keyId, request);
    // One body for all reasons: which part of a credential was wrong is nobody's business.
    throw new DomainError('unauthenticated');
  }
  limiter.succeeded(caller);
  if (!answer.principal.scopes.has(scope)) {
    events.scopeMissing(scope, answer.principal, request);
    throw new DomainError('forbidden');
  }
  return answer.principal;
}

/** Every one of them: Node's own `headers` would keep the first and hide the others. */
function authorizationLines(rawHeaders: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === 'authorization') lines.push(rawHeaders[i + 1] ?? '');
  }
  return lines;
}

/** The key was only read: a lost answer changed nothing. */
function asUnavailable(error: unknown): never {
  if (error instanceof OutcomeUnknown) {
    throw new StorageUnavailable('the credential could not be read', { cause: error });
  }
  if (error instanceof IssuerUnavailable) throw new DomainError('issuer_unavailable', { cause: error });
  throw error;
}

function requireAccess(route: RouteOptions, isPublicUrl: (url: string) => boolean): void {
  const method = Array.isArray(route.method) ? route.method.join(',') : route.method;
  if (route.config?.access?.kind === 'signature' && route.config.rawBody !== true) {
    throw new Error(`Route ${method} ${route.url} is signed by providers and parses its body first.`);
  }
  if (route.config?.access !== undefined || isPublicUrl(route.url)) return;
  throw new Error(
    `Route ${method} ${route.url} declares no scope. Give it @NeedsScope('…'), @SignedByProvider(), or @Public() if it tells nobody anything.`,
  );
}

/**
 * The caller of a route that declared a scope.
 * @throws Error on a public route: a bug of the route.
 */
export function principalOf(request: FastifyRequest): Principal {
  assert(request.principal !== null, 'a route with a scope has a principal');
  return request.principal;
}
