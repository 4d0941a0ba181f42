import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { Controller, Get, Module, Post, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { httpServerOptions, installHttpEdges } from '../../../src/http/http-edges.js';
import { StorageUnavailable } from '../../../src/persistence/database-errors.js';

let release: () => void = () => undefined;
let entered: () => void = () => undefined;

/** Answers when the test says so. */
async function wait(): Promise<object> {
  const released = new Promise<void>((resolve) => (release = resolve));
  entered();
  await released;
  return { done: true };
}

@Controller()
class SlowController {
  @Get('slow')
  read(): Promise<object> {
    return wait();
  }

  @Post('slow')
  write(): Promise<object> {
    return wait();
  }

  @Get('broken')
  broken(): never {
    throw new Error('an assumption of ours does not hold');
  }

  @Get('stored')
  stored(): never {
    throw new StorageUnavailable('Postgres cannot be reached');
  }
}

@Module({ controllers: [SlowController] })
class SlowModule {}

type Line = { readonly level: string; readonly fields: Record<string, unknown> };
const lines: Line[] = [];
const record = (level: string) => (fields: unknown) =>
  void lines.push({ level, fields: fields as Line['fields'] });
const logger: LoggerService = { log: () => undefined, error: record('error'), warn: record('warn') };

const apps: NestFastifyApplication[] = [];
async function start(handlerTimeout: number): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({ ...httpServerOptions(false), handlerTimeout });
  const app = await NestFactory.create<NestFastifyApplication>(SlowModule, adapter, {
    bodyParser: false,
    logger,
  });
  installHttpEdges(app);
  apps.push(app);
  return app;
}

afterEach(async () => {
  release();
  lines.length = 0;
  for (const app of apps.splice(0)) await app.close();
});

describe('a handler past its time', () => {
  it('answers 503, outcome unknown for a command and overloaded for a read', async () => {
    const app = await start(20);
    await app.init();
    for (const [method, code] of [
      ['POST', 'outcome_unknown'],
      ['GET', 'overloaded'],
    ] as const) {
      const answer = await app.inject({ method, url: '/slow' });
      expect(answer.statusCode).toBe(503);
      expect(answer.json()).toMatchObject({ code, retryable: true });
      expect(answer.headers['retry-after']).toMatch(/^\d+$/);
      // The handler's own answer comes too late and must not disturb anything.
      release();
    }
  });
});

describe('a body that does not arrive in time', () => {
  it('is 408 and the last answer on its connection: nothing was begun', async () => {
    const app = await start(20);
    await app.listen(0, '127.0.0.1');
    const { port } = app.getHttpServer().address() as AddressInfo;
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(
          'POST /slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
        ),
      );
      let received = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
      socket.on('close', () => resolve(received)).on('error', reject);
    });
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 408']);
    expect(text).toContain('"code":"request_timeout"');
  });
});

describe('while the server stops', () => {
  it('the request in flight is finished and a new one on its connection is 503', async () => {
    const app = await start(10_000);
    const stopping = new Promise<void>((resolve) => {
      app
        .getHttpAdapter()
        .getInstance()
        .addHook('preClose', (done) => {
          resolve();
          done();
        });
    });
    await app.listen(0, '127.0.0.1');
    const inFlight = new Promise<void>((resolve) => (entered = resolve));
    const request = 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n';
    const { port } = app.getHttpServer().address() as AddressInfo;
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    const received = new Promise<string>((resolve, reject) => {
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      socket.on('close', () => resolve(text)).on('error', reject);
    });
    await inFlight;
    const closed = app.close();
    await stopping;
    const second = once(app.getHttpServer(), 'request');
    socket.write(request);
    await second;
    release();
    const text = await received;
    await closed;
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 503']);
    expect(text).toContain('"code":"shutting_down"');
    expect(text).toContain('{"done":true}');
  });

  it('is not held up by a client that keeps its connection after the answer to what it had begun', async () => {
    const app = await start(10_000);
    await app.listen(0, '127.0.0.1');
    const inFlight = new Promise<void>((resolve) => (entered = resolve));
    const { port } = app.getHttpServer().address() as AddressInfo;
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'));
    const ended = once(socket.resume(), 'close');
    await inFlight;
    const closed = app.close();
    await expect.poll(() => app.getHttpServer().listening).toBe(false);
    release();
    // For the client's 75 s of keep-alive otherwise.
    await Promise.all([closed, ended]);
  });
});

describe('the log', () => {
  it('names an unknown fault once, with its request id and the fault for the allow-list', async () => {
    const app = await start(10_000);
    await app.init();
    const answer = await app.inject({ method: 'GET', url: '/broken' });
    expect(answer.statusCode).toBe(500);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: 'error',
      fields: {
        event: 'internal',
        request_id: answer.headers['request-id'],
        err: expect.any(Error) as Error,
      },
    });
  });

  it('names a storage fault as a warning and a refusal not at all', async () => {
    const app = await start(10_000);
    await app.init();
    await app.inject({ method: 'GET', url: '/nowhere' });
    await app.inject({ method: 'GET', url: '/stored' });
    expect(lines.map(({ level, fields }) => [level, fields['event']])).toEqual([
      ['warn', 'storage_unavailable'],
    ]);
  });
});
