import 'reflect-metadata';
import { Controller, Get, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { LoggerModule } from 'nestjs-pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger, httpLoggerParams, type Log } from '../../../src/platform/logger.js';

const PAYMENT = `pay_${'a2'.repeat(16)}`;

function recorder(): { log: Log; lines: Record<string, unknown>[]; raw: string[] } {
  const raw: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const destination = {
    write: (text: string) => {
      raw.push(text);
      lines.push(JSON.parse(text) as Record<string, unknown>);
    },
  };
  return { log: createLogger({ level: 'debug', name: 'test', destination }), lines, raw };
}

describe('a log line', () => {
  it('holds time in UTC, level, process, event and the allowed fields', () => {
    const { log, lines } = recorder();
    log.info({ payment_id: PAYMENT, version: 3, state: 'held', duration_ms: 12.4 }, 'payment_held');
    expect(lines).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        level: 'info',
        name: 'test',
        event: 'payment_held',
        payment_id: PAYMENT,
        version: 3,
        state: 'held',
        duration_ms: 12,
      },
    ]);
  });

  it.each([
    ['a field outside the list', (log: Log) => log.info({ destination: 'SECRET' }, 'x')],
    ['free text in place of an event', (log: Log) => log.info('paid to SECRET')],
    ['text with values put in', (log: Log) => log.info('paid to %s', 'SECRET')],
    ['a binding of a child', (log: Log) => log.child({ reference: 'SECRET' }).info('x')],
    ['a binding of a grandchild', (log: Log) => log.child({}).child({ key: 'SECRET' }).info('x')],
    ['an allowed field of another form', (log: Log) => log.info({ payment_id: 'SECRET' }, 'x')],
    ['an allowed field that holds an object', (log: Log) => log.info({ code: { a: 'SECRET' } }, 'x')],
    ['the message of an error', (log: Log) => log.error(new Error('SECRET'))],
    ['the message of an error beside an event', (log: Log) => log.error({ err: new Error('SECRET') }, 'x')],
    ['an error whose message is one word', (log: Log) => log.error({ err: new Error('secret') })],
    [
      'the cause of an error',
      (log: Log) => log.error({ err: new Error('a', { cause: new Error('SECRET') }) }, 'x'),
    ],
    [
      'a member of an error',
      (log: Log) => log.error({ err: Object.assign(new Error('a'), { detail: 'SECRET' }) }, 'x'),
    ],
    [
      'a message that imitates a stack',
      (log: Log) => log.error({ err: new Error('a\n    at b (SECRET.ts:1:1)\nc') }, 'x'),
    ],
  ])('never holds %s', (_what, write) => {
    const { log, lines, raw } = recorder();
    write(log);
    expect(lines).toHaveLength(1);
    expect(raw.join('')).not.toMatch(/secret/i);
  });

  it('leaves the code of an error and its place in the source', () => {
    const { log, lines } = recorder();
    log.error({ err: Object.assign(new Error('x'), { code: '23505' }) }, 'sweep_failed');
    expect(lines[0]).toMatchObject({ event: 'sweep_failed', code: '23505', level: 'error' });
    expect(lines[0]?.['at']).toEqual(
      expect.arrayContaining([expect.stringMatching(/^logger\.test\.ts:\d+$/)]),
    );
  });

  it('leaves the class of an error that has no code', () => {
    const { log, lines } = recorder();
    log.error({ err: new TypeError('x') }, 'sweep_failed');
    expect(lines[0]).toMatchObject({ code: 'TypeError' });
  });

  it('escapes control characters, so that one event stays one line', () => {
    const { log, raw } = recorder();
    log.info({ operation: 'a\nb', code: 'c\u0007' }, 'x');
    expect(raw.join('').split('\n')).toHaveLength(2);
  });
});

@Controller()
class ProbeController {
  @Get('v1/payments/:id')
  get(): string {
    return 'ok';
  }
  @Post('v1/payments')
  create(): never {
    throw new Error('SECRET of the database');
  }
}

describe('the request log of the API', () => {
  const { log, lines, raw } = recorder();
  let app: NestFastifyApplication;
  beforeAll(async () => {
    @Module({ imports: [LoggerModule.forRoot(httpLoggerParams(log))], controllers: [ProbeController] })
    class ProbeModule {}
    let n = 0;
    const adapter = new FastifyAdapter({ genReqId: () => `req-${++n}` });
    app = await NestFactory.create<NestFastifyApplication>(ProbeModule, adapter, { logger: false });
    await app.init();
    await app.getHttpAdapter().getInstance().ready();
  });
  afterAll(() => app.close());

  it('writes one line for each request, with the id that Fastify made', async () => {
    const answer = await app.inject({ method: 'GET', url: `/v1/payments/${PAYMENT}?reference=SECRET` });
    expect(answer.statusCode).toBe(200);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      event: 'request_done',
      level: 'info',
      request_id: 'req-1',
      operation: 'GET /v1/payments/*',
      payment_id: PAYMENT,
      code: 200,
    });
  });

  it('writes a 500 at error level and a refused path without the path', async () => {
    lines.length = 0;
    await app.inject({ method: 'POST', url: '/v1/payments', payload: {} });
    await app.inject({ method: 'GET', url: '/v1/SECRET/..%2F?q=SECRET' });
    expect(lines.map((l) => [l['level'], l['operation'], l['code']])).toEqual([
      ['error', 'POST /v1/payments', 500],
      ['info', 'GET /v1/*/*', 404],
    ]);
    expect(raw.join('')).not.toMatch(/secret/i);
  });
});
