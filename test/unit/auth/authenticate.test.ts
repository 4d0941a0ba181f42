import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { installAuthentication, type AuthenticationOptions } from '../../../src/auth/authenticate.js';
import type { Authenticator } from '../../../src/auth/authenticator.js';
import { FailureLimiter } from '../../../src/auth/failure-limiter.js';
import { NeedsScope, Public } from '../../../src/auth/scopes.js';
import { DomainError } from '../../../src/domain/domain-error.js';
import { OutcomeUnknown, StorageUnavailable } from '../../../src/persistence/database-errors.js';

const nobody = {
  check: () => Promise.resolve({ kind: 'refused', reason: 'missing', keyId: null }),
} as unknown as Authenticator;

const options = (authenticator: Authenticator = nobody): AuthenticationOptions => ({
  authenticator,
  isPublicUrl: (url) => url === '/docs',
  limiter: new FailureLimiter(),
  events: { refused: () => undefined, limited: () => undefined, scopeMissing: () => undefined },
});

@Controller()
class Declared {
  @Get('closed') @NeedsScope('payments:read') closed() {
    return 'closed';
  }
  @Get('open') @Public() open() {
    return 'open';
  }
}
@Controller()
class Forgotten {
  @Get('forgotten') forgotten() {
    return 'anybody could read this';
  }
}
@Module({ controllers: [Declared] })
class Good {}
@Module({ controllers: [Declared, Forgotten] })
class Bad {}

async function start(module: unknown): Promise<NestFastifyApplication> {
  const app = await NestFactory.create<NestFastifyApplication>(module as never, new FastifyAdapter(), {
    logger: false,
    abortOnError: false,
  });
  installAuthentication(app.getHttpAdapter().getInstance(), options());
  await app.init();
  await app.getHttpAdapter().getInstance().ready();
  return app;
}

describe('a route', () => {
  it('without a declared scope stops the start-up with a sentence that names it', async () => {
    await expect(start(Bad)).rejects.toThrow(/^Route GET \/forgotten declares no scope\./);
  });

  it('with a scope, and one that is public, start', async () => {
    const app = await start(Good);
    expect((await app.inject('/open')).payload).toBe('open');
    expect((await app.inject('/closed')).payload).not.toContain('closed');
    await app.close();
  });

  it('added beside the framework is asked for its scope too, the documentation apart', () => {
    const server = fastify();
    installAuthentication(server, options());
    expect(() => server.get('/docs', () => 'docs')).not.toThrow();
    expect(() => server.get('/docs2', () => 'x')).toThrow(/Route GET \/docs2 declares no scope/);
    expect(() => server.route({ method: ['POST', 'PUT'], url: '/y', handler: () => 'y' })).toThrow(
      /Route POST,PUT \/y declares no scope/,
    );
  });
});

describe('a credential that cannot be checked', () => {
  it.each([new StorageUnavailable('away'), new OutcomeUnknown('lost')])(
    'is neither accepted nor refused: $name becomes unavailable, and the handler does not run',
    async (fault) => {
      const server = fastify();
      installAuthentication(
        server,
        options({ check: () => Promise.reject(fault) } as unknown as Authenticator),
      );
      let ran = false;
      let seen: unknown;
      server.setErrorHandler((error, _request, reply) => {
        seen = error;
        void reply.code(503).send();
      });
      server.get('/x', { config: { access: { kind: 'scope', scope: 'payments:read' } } }, () => (ran = true));
      await server.inject('/x');
      expect(seen).toBeInstanceOf(StorageUnavailable);
      expect(ran).toBe(false);
    },
  );
});

describe('the scope of a route', () => {
  it.each([
    [['payments:read'], 200],
    [['payments:create', 'payments:cancel'], 403],
    [[], 403],
  ] as const)('is asked of the credential: %j is %d', async (scopes, status) => {
    const server = fastify();
    const principal = { tenantId: 't', tenantRef: 't-1', actor: 'api_key:x', scopes: new Set(scopes) };
    const missing: string[] = [];
    installAuthentication(server, {
      ...options({
        check: () => Promise.resolve({ kind: 'authenticated', principal }),
      } as unknown as Authenticator),
      events: {
        refused: () => undefined,
        limited: () => undefined,
        scopeMissing: (scope) => void missing.push(scope),
      },
    });
    server.setErrorHandler((error, _request, reply) => {
      void reply.code(error instanceof DomainError ? error.status : 500).send();
    });
    server.get('/x', { config: { access: { kind: 'scope', scope: 'payments:read' } } }, (request) => {
      return request.principal?.tenantId;
    });
    expect((await server.inject('/x')).statusCode).toBe(status);
    expect(missing).toEqual(status === 403 ? ['payments:read'] : []);
  });
});
