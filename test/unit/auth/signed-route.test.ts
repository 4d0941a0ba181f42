import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { installAuthentication } from '../../../src/auth/authenticate.js';
import type { Authenticator } from '../../../src/auth/authenticator.js';
import { FailureLimiter } from '../../../src/auth/failure-limiter.js';
import { installBodyParser, MAX_BODY_BYTES, MAX_RAW_BODY_BYTES } from '../../../src/http/body-parser.js';

let asked = 0;
const nobody = {
  check: () => {
    asked++;
    return Promise.resolve({ kind: 'refused', reason: 'missing', keyId: null });
  },
} as unknown as Authenticator;

let server: FastifyInstance;
function start(): FastifyInstance {
  server = fastify();
  installAuthentication(server, {
    authenticator: nobody,
    isPublicUrl: () => false,
    limiter: new FailureLimiter(),
    events: { refused: () => undefined, limited: () => undefined, scopeMissing: () => undefined },
  });
  installBodyParser(server);
  return server;
}
afterEach(() => server.close());

const SIGNED = { access: { kind: 'signature' }, rawBody: true } as const;
const OPEN = { access: { kind: 'public' } } as const;

describe('a route that providers sign', () => {
  it('asks for no credential, and its handler gets the bytes as they came', async () => {
    start().post('/hook', { config: SIGNED }, (request) => ({
      isBytes: Buffer.isBuffer(request.body),
      text: String(request.body),
      principal: request.principal,
    }));
    const body = ' { "b": 1, "a": 1, "a": 2 }\n';
    const answer = await server.inject({ method: 'POST', url: '/hook', body });
    expect(answer.json()).toEqual({ isBytes: true, text: body, principal: null });
    expect(asked).toBe(0);
  });

  it('stops the start-up when it would parse its body first', () => {
    start();
    expect(() => server.post('/hook', { config: { access: { kind: 'signature' } } }, () => 'x')).toThrow(
      /Route POST \/hook is signed by providers and parses its body first/,
    );
  });

  it('takes 64 KiB, and other routes no more than before', async () => {
    start();
    server.post('/hook', { config: SIGNED }, (request) => (request.body as Buffer).length);
    server.post('/other', { config: OPEN }, () => 'read');
    const post = async (url: string, bytes: number): Promise<number> => {
      const body = JSON.stringify('x'.repeat(bytes - 2));
      const headers = { 'content-type': 'application/json' };
      return (await server.inject({ method: 'POST', url, body, headers })).statusCode;
    };
    expect(await post('/hook', MAX_RAW_BODY_BYTES)).toBe(200);
    expect(await post('/hook', MAX_RAW_BODY_BYTES + 1)).toBe(413);
    expect(await post('/other', MAX_BODY_BYTES)).toBe(200);
    expect(await post('/other', MAX_BODY_BYTES + 1)).toBe(413);
  });
});
