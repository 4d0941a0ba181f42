import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Body, Controller, Get, Module, Param, Post, Query } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, RouteConfig, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/domain/domain-error.js';
import { HTTP_LIMITS, httpServerOptions, installHttpEdges } from '../../../src/http/http-edges.js';
import {
  CreatePayment,
  type CreatePaymentCommand,
} from '../../../src/payments/schemas/create-payment.schema.js';
import { ListPayments } from '../../../src/payments/schemas/list-payments.schema.js';
import { PaymentIdParam } from '../../../src/payments/schemas/payment-id.schema.js';
import { OutcomeUnknown, StorageUnavailable } from '../../../src/persistence/database-errors.js';

/** What the next call of /v1/throw throws. */
let toThrow: unknown;

@Controller('v1')
class EdgeController {
  @Post('payments')
  create(@Body({ schema: CreatePayment }) command: CreatePaymentCommand): object {
    return { amount: command.money.amountMinor.toString(), destination: command.destination };
  }

  @Get('payments')
  list(@Query({ schema: ListPayments }) query: { limit: number; cursor: string | null }): object {
    return { limit: query.limit, cursor: query.cursor };
  }

  @Get('payments/:id')
  get(@Param('id', { schema: PaymentIdParam }) id: string): object {
    return { id };
  }

  @Post('payments/:id/cancel')
  cancel(@Param('id', { schema: PaymentIdParam }) id: string, @Body() body: unknown): object {
    return { id, body: body === undefined ? 'none' : body };
  }

  @Post('webhooks/:provider')
  @RouteConfig({ rawBody: true })
  webhook(@Body() body: unknown): object {
    return { bytes: body instanceof Buffer ? body.toString('hex') : typeof body };
  }

  @Get('throw')
  throw(): never {
    throw toThrow;
  }

  @Post('throw')
  throwOnPost(): never {
    throw toThrow;
  }
}

@Module({ controllers: [EdgeController] })
class EdgeModule {}

let app: NestFastifyApplication;
let port: number;

beforeAll(async () => {
  app = await NestFactory.create<NestFastifyApplication>(
    EdgeModule,
    new FastifyAdapter(httpServerOptions(false)),
    {
      bodyParser: false,
      logger: false,
    },
  );
  installHttpEdges(app);
  await app.listen(0, '127.0.0.1');
  port = (app.getHttpServer().address() as AddressInfo).port;
});
afterAll(() => app.close());

type Answer = {
  status: number;
  headers: Record<string, unknown>;
  body: Record<string, unknown>;
  text: string;
};

async function send(
  method: string,
  url: string,
  payload?: string | Buffer,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<Answer> {
  const answer = await app.inject({
    method: method as 'GET',
    url,
    payload,
    headers: payload === undefined ? {} : headers,
  });
  const body = answer.body === '' ? {} : (JSON.parse(answer.body) as Record<string, unknown>);
  return { status: answer.statusCode, headers: answer.headers, body, text: answer.body };
}

/** Writes bytes on a socket and reads until the server closes it. */
async function raw(bytes: string): Promise<{ status: number; head: string; body: Record<string, unknown> }> {
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let received = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
    socket.on('close', () => resolve(received)).on('error', reject);
  });
  const [head = '', body = ''] = text.split('\r\n\r\n');
  return { status: Number(head.slice(9, 12)), head, body: JSON.parse(body) as Record<string, unknown> };
}

function expectProblem(answer: Answer, status: number, code: string): void {
  expect(answer.body['code']).toBe(code);
  expect(answer.status).toBe(status);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.body).toMatchObject({
    type: `urn:problem:${code}`,
    status,
    instance: `urn:request:${String(answer.headers['request-id'])}`,
    request_id: answer.headers['request-id'],
  });
  for (const member of ['title', 'detail'] as const) expect(answer.body[member]).toEqual(expect.any(String));
  expect(answer.body['retryable']).toEqual(expect.any(Boolean));
}

const VALID = {
  amount: 1999,
  currency: 'EUR',
  destination: 'acct_1032D82eZvKYlo2C',
  execute_at: '2026-12-24T09:00:00Z',
};
const without = (text: string): string => text.slice(0, -1);
const VALID_TEXT = JSON.stringify(VALID);
const ID = `pay_${'a'.repeat(32)}`;

describe('every answer', () => {
  it('has a request id of its own, no-store and what keeps browsers from using it, also on refusals and unknown routes', async () => {
    const answers = [
      await send('POST', '/v1/payments', VALID_TEXT),
      await send('POST', '/v1/payments', '{}'),
      await send('GET', '/nowhere'),
      await send('GET', '/v1/payments/%FF'),
      await send('OPTIONS', '*'),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([201, 400, 404, 400, 404]);
    for (const { headers } of answers) {
      expect(headers['request-id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['strict-transport-security']).toBe('max-age=31536000; includeSubDomains');
      expect(headers['referrer-policy']).toBe('no-referrer');
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'.*frame-ancestors 'none'$/);
    }
    expect(new Set(answers.map(({ headers }) => headers['request-id'])).size).toBe(answers.length);
  });

  it('does not take the request id from the client', async () => {
    const answer = await send('POST', '/v1/payments', VALID_TEXT, {
      'content-type': 'application/json',
      'request-id': 'mine',
      'x-request-id': 'mine',
    });
    expect(answer.headers['request-id']).not.toBe('mine');
  });
});

describe('the body', () => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'Application/JSON',
  ])('is read as %s', async (type) => {
    expect((await send('POST', '/v1/payments', VALID_TEXT, { 'content-type': type })).status).toBe(201);
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'application/jsonx',
    'application/vnd.x+json',
    'multipart/form-data; boundary=x',
    'json',
    '',
  ])('is refused as "%s"', async (type) => {
    expectProblem(
      await send('POST', '/v1/payments', VALID_TEXT, { 'content-type': type }),
      415,
      'unsupported_media_type',
    );
  });

  it.each(['gzip', 'br', 'identity'])('is refused with the content encoding %s', async (encoding) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    expectProblem(await send('POST', '/v1/payments', VALID_TEXT, headers), 415, 'unsupported_media_type');
  });

  it.each([
    ['not JSON', without(VALID_TEXT), 'body_syntax'],
    ['a trailing comma', `${without(VALID_TEXT)},}`, 'body_syntax'],
    ['a duplicate member', `${without(VALID_TEXT)},"amount":1}`, 'body_duplicate_member'],
    ['__proto__', `${without(VALID_TEXT)},"__proto__":{}}`, 'body_forbidden_member'],
    ['a lone surrogate', `${without(VALID_TEXT)},"reference":"\\ud800"}`, 'body_forbidden_text'],
    ['NUL', `${without(VALID_TEXT)},"reference":"\\u0000"}`, 'body_forbidden_text'],
    ['a byte order mark', `\ufeff${VALID_TEXT}`, 'body_byte_order_mark'],
    ['10,000 open brackets', '['.repeat(10_000), 'body_too_deep'],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'body_not_utf8'],
  ])('with %s is 400', async (_what, body, code) => {
    expectProblem(await send('POST', '/v1/payments', body), 400, code);
  });

  it('TP-03: above 16 KiB is 413, declared or not', async () => {
    expectProblem(await send('POST', '/v1/payments', 'x'.repeat(16 * 1024 + 1)), 413, 'payload_too_large');
    const chunk = 'x'.repeat(0x4001);
    const answer = await raw(
      'POST /v1/payments HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n' +
        `4001\r\n${chunk}\r\n0\r\n\r\n`,
    );
    expect(answer).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
  });

  it('of exactly 16 KiB is read', async () => {
    const padded = VALID_TEXT + ' '.repeat(16 * 1024 - VALID_TEXT.length);
    expect((await send('POST', '/v1/payments', padded)).status).toBe(201);
  });

  it('may be absent or empty where an operation has no members', async () => {
    for (const answer of [
      await send('POST', `/v1/payments/${ID}/cancel`),
      await send('POST', `/v1/payments/${ID}/cancel`, ''),
      await send('POST', `/v1/payments/${ID}/cancel`, '', { 'content-type': 'text/plain' }),
    ]) {
      expect(answer.body).toEqual({ id: ID, body: 'none' });
    }
  });

  it('is named missing where an operation needs one', async () => {
    expectProblem(await send('POST', '/v1/payments'), 400, 'body_missing');
    expectProblem(await send('POST', '/v1/payments', ''), 400, 'body_missing');
    expectProblem(await send('POST', '/v1/payments', 'null'), 400, 'validation_failed');
  });

  it('stays bytes on a route that asks for them, whatever its type', async () => {
    const answer = await send('POST', '/v1/webhooks/x', Buffer.from([0xff, 0x00]), {
      'content-type': 'text/plain',
    });
    expect(answer.body).toEqual({ bytes: 'ff00' });
  });
});

describe('validation', () => {
  it('SE-02: an extra member is 400, named by the object that holds it', async () => {
    for (const name of ['state', 'id', 'created_at', 'tenant_id', 'version', 'provider_key', 'constructor']) {
      const answer = await send('POST', '/v1/payments', JSON.stringify({ ...VALID, [name]: 'x' }));
      expectProblem(answer, 400, 'validation_failed');
      expect(answer.body['errors']).toEqual([{ pointer: '', code: 'unknown_member' }]);
    }
  });

  it('never echoes names or values that the client chose', async () => {
    const mark = 'CANARY_7f3a';
    const bodies = [
      { ...VALID, [mark]: mark },
      { ...VALID, metadata: { [mark]: 5 } },
      { ...VALID, currency: mark },
      { ...VALID, destination: `${mark} ` },
      { ...VALID, reference: `${mark}\n` },
      { ...VALID, execute_at: mark },
    ];
    for (const body of bodies) {
      const answer = await send('POST', '/v1/payments', JSON.stringify(body));
      expectProblem(answer, 400, 'validation_failed');
      expect(answer.text).not.toContain(mark);
    }
    for (const url of [
      `/v1/payments?${mark}=1`,
      `/v1/payments?state=${mark}`,
      `/v1/${mark}`,
      `/v1/payments/${mark}`,
    ]) {
      const answer = await send('GET', url);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.text).not.toContain(mark);
    }
  });

  it('AM-04: a code outside the table is 422, once every member is well formed', async () => {
    const answer = await send('POST', '/v1/payments', JSON.stringify({ ...VALID, currency: 'XXX' }));
    expectProblem(answer, 422, 'currency_unsupported');
    const both = await send('POST', '/v1/payments', JSON.stringify({ ...VALID, currency: 'XXX', amount: 0 }));
    expectProblem(both, 400, 'validation_failed');
  });

  it.each([
    '-1',
    '0',
    '-0',
    '1e3',
    '1.0',
    '1e21',
    '"100"',
    '"1e3"',
    '+5',
    '"１００"',
    '1234567890123',
    'true',
    'null',
    '[]',
    '{}',
    '19.99',
    '0.30000000000000004',
    '9007199254740993',
    '1E0',
    '00',
    '01',
  ])('AM-03: the amount %s is 400', async (literal) => {
    const answer = await send('POST', '/v1/payments', VALID_TEXT.replace('1999', literal));
    expect(answer.status).toBe(400);
  });

  it('AM-02: the amount 999999999999 arrives as it was written', async () => {
    const answer = await send('POST', '/v1/payments', VALID_TEXT.replace('1999', '999999999999'));
    expect(answer.body).toMatchObject({ amount: '999999999999' });
  });

  it('TM-05: a number as a time is 400', async () => {
    const answer = await send(
      'POST',
      '/v1/payments',
      JSON.stringify({ ...VALID, execute_at: 1_798_102_800 }),
    );
    expect(answer.body['errors']).toEqual([{ pointer: '/execute_at', code: 'wrong_type' }]);
  });

  it('of a query refuses what is unknown, doubled or out of range', async () => {
    expect((await send('GET', '/v1/payments')).body).toEqual({ limit: 25, cursor: null });
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=1e1',
      'limit=1&limit=2',
      'offset=1',
      'state=paid',
      'currency=XXX',
      'cursor=a%20b',
      '__proto__=1',
      'reference=%00',
    ]) {
      expectProblem(await send('GET', `/v1/payments?${query}`), 400, 'validation_failed');
    }
  });

  it('ID-09: an id of another form is 404; a sequence that does not decode is 400', async () => {
    for (const id of [
      'x',
      'a%2Fb',
      '%25',
      '..',
      'a%3Fb',
      'a%23b',
      ';',
      '%20',
      `${ID}%20`,
      ID.toUpperCase(),
      '',
    ]) {
      const answer = await send('GET', `/v1/payments/${id}`);
      expect([404, 400]).toContain(answer.status);
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(answer.status).toBe(404);
    }
    for (const id of ['%', '%F', '%FF', '%C3%28', 'a%']) {
      expectProblem(await send('GET', `/v1/payments/${id}`), 400, 'malformed_url');
      expectProblem(await send('GET', `/v1/payments?reference=${id}`), 400, 'malformed_url');
      expectProblem(await send('POST', `/v1/payments/${id}/cancel`), 400, 'malformed_url');
    }
  });
});

describe('routing', () => {
  it('answers 405 with the methods of the path, in Allow', async () => {
    const answer = await send('DELETE', '/v1/payments');
    expectProblem(answer, 405, 'method_not_allowed');
    expect(answer.headers['allow']).toBe('GET, HEAD, POST');
    expect((await send('GET', `/v1/payments/${ID}/cancel`)).headers['allow']).toBe('POST');
    expectProblem(await send('TRACE', '/v1/payments'), 405, 'method_not_allowed');
    expectProblem(await send('PROPFIND', '/v1/payments'), 405, 'method_not_allowed');
  });

  it('answers 404 for a path without a route, whatever the body', async () => {
    for (const url of ['/', '/v1', '/v2/payments', '/v1/payments/', `/v1/payments/${ID}/pay`]) {
      expect((await send('POST', url, '{"a"')).status).toBe(404);
    }
    expectProblem(await send('POST', '/v1/payments//cancel'), 404, 'route_not_found');
    expectProblem(
      await send('POST', '/nowhere', 'x', { 'content-type': 'text/plain' }),
      404,
      'route_not_found',
    );
  });

  it('answers 414 for a long part of a path and for a long target', async () => {
    expectProblem(await send('GET', `/v1/payments/${'a'.repeat(101)}`), 414, 'uri_too_long');
    expectProblem(await send('GET', `/v1/payments?reference=${'a'.repeat(5_000)}`), 414, 'uri_too_long');
  });
});

describe('what a handler throws', () => {
  const thrown = async (error: unknown, method = 'GET'): Promise<Answer> => {
    toThrow = error;
    return send(method, '/v1/throw');
  };

  it('a refusal with state, version and further members is shown whole', async () => {
    const answer = await thrown(
      new DomainError('submission_started', {
        state: 'unknown',
        version: 7,
        extra: { outcome: 'unknown', may_have_moved: true },
      }),
    );
    expectProblem(answer, 409, 'submission_started');
    expect(answer.body).toMatchObject({
      state: 'unknown',
      version: 7,
      outcome: 'unknown',
      may_have_moved: true,
      retryable: false,
    });
    expect(answer.headers['retry-after']).toBeUndefined();
  });

  it('an unknown fault is 500 and says nothing of itself', async () => {
    for (const error of [
      new Error('secret acct_1'),
      new TypeError('secret'),
      'secret',
      null,
      undefined,
      { message: 'secret', statusCode: 404 },
    ]) {
      const answer = await thrown(error);
      expectProblem(answer, 500, 'internal');
      expect(answer.text).not.toContain('secret');
      expect(answer.text).not.toContain('stack');
    }
  });

  it('a fault of the database is 503 with Retry-After in whole seconds', async () => {
    for (const [error, code] of [
      [new StorageUnavailable('x'), 'storage_unavailable'],
      [new OutcomeUnknown('x'), 'outcome_unknown'],
    ] as const) {
      const answer = await thrown(error, 'POST');
      expectProblem(answer, 503, code);
      expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
      expect(answer.body['retryable']).toBe(true);
    }
  });

  it('401 names the scheme', async () => {
    const answer = await thrown(new DomainError('unauthenticated'));
    expectProblem(answer, 401, 'unauthenticated');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });
});

describe('bytes that are no request', () => {
  it.each([
    ['nonsense', 'nonsense\r\n\r\n'],
    ['a control character in a header', 'GET /v1/payments HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n'],
    [
      'two lengths',
      'POST /v1/payments HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
    ['an unknown method', 'FOO /v1/payments HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['no Host', 'GET /v1/payments HTTP/1.1\r\nConnection: close\r\n\r\n'],
  ])('%s is 400 in problem form', async (_what, bytes) => {
    const answer = await raw(bytes);
    expect(answer).toMatchObject({ status: 400, body: { code: 'malformed_request', status: 400 } });
    expect(answer.head).toContain('application/problem+json');
    expect(answer.head.toLowerCase()).toContain('cache-control: no-store');
    expect(answer.head).toContain(String(answer.body['request_id']));
  });

  it('TP-03: headers of 1 MB are 431 in problem form', async () => {
    const answer = await raw(
      `GET /v1/payments HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(HTTP_LIMITS.headerBytes + 1)}\r\n\r\n`,
    );
    expect(answer).toMatchObject({ status: 431, body: { code: 'header_too_large', status: 431 } });
  });

  it('an Expect header that nobody understands is 417 in problem form', async () => {
    const answer = await raw('GET /v1/payments HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n');
    expect(answer).toMatchObject({ status: 417, body: { code: 'expectation_failed' } });
  });
});

describe('the limits of the server', () => {
  it('are the documented ones, each inner one smaller', () => {
    const server = app.getHttpServer() as unknown as Record<string, number>;
    expect(server).toMatchObject({
      requestTimeout: 10_000,
      headersTimeout: 5_000,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: 75_000,
      maxConnections: 2_000,
    });
    expect(HTTP_LIMITS.headersMs).toBeLessThan(HTTP_LIMITS.requestMs);
  });
});
