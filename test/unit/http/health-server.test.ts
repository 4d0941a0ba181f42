import { afterEach, describe, expect, it } from 'vitest';
import { startHealthServer, type HealthServer } from '../../../src/http/health-server.js';
import { readiness } from '../../../src/http/readiness.js';

let server: HealthServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

const well = {
  live: () => true,
  ready: readiness({}),
  metrics: () => Promise.resolve('payments_current 1\n'),
};

async function get(
  path: string,
  init?: RequestInit,
): Promise<{ status: number; text: string; headers: Headers }> {
  const answer = await fetch(`http://127.0.0.1:${server?.port}${path}`, init);
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

describe('the health port', () => {
  it('answers 200 to /livez while the process works and 503 when it does not', async () => {
    let alive = true;
    server = await startHealthServer({ host: '127.0.0.1', port: 0, ...well, live: () => alive });
    expect(await get('/livez')).toMatchObject({ status: 200, text: '{"ok":true}' });
    alive = false;
    expect(await get('/livez')).toMatchObject({ status: 503, text: '{"ok":false}' });
  });

  it('keeps /livez at 200 while what the process depends on is down', async () => {
    const ready = readiness({ postgres: { required: true, run: () => Promise.reject(new Error('down')) } });
    server = await startHealthServer({ host: '127.0.0.1', port: 0, ...well, ready });
    expect(await get('/livez')).toMatchObject({ status: 200 });
    const answer = await get('/readyz');
    expect(answer.status).toBe(503);
    expect(JSON.parse(answer.text)).toEqual({ ok: false, checks: { postgres: 'failed' } });
  });

  it('serves the metrics as Prometheus text', async () => {
    server = await startHealthServer({ host: '127.0.0.1', port: 0, ...well });
    const answer = await get('/metrics');
    expect(answer).toMatchObject({ status: 200, text: 'payments_current 1\n' });
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  });

  it('answers 503 without a reason when metrics or readiness break, and goes on', async () => {
    const broken = (): Promise<never> => Promise.reject(new Error('SECRET'));
    server = await startHealthServer({ host: '127.0.0.1', port: 0, ...well, metrics: broken, ready: broken });
    for (const path of ['/metrics', '/readyz']) {
      const answer = await get(path);
      expect(answer.status).toBe(503);
      expect(answer.text).not.toContain('SECRET');
    }
    expect(await get('/livez')).toMatchObject({ status: 200 });
  });

  it('answers 404 to any other path and 405 to any other method', async () => {
    server = await startHealthServer({ host: '127.0.0.1', port: 0, ...well });
    expect(await get('/v1/payments')).toMatchObject({ status: 404 });
    const answer = await get('/livez', { method: 'POST' });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
  });

  it('rejects when its port is taken', async () => {
    server = await startHealthServer({ host: '127.0.0.1', port: 0, ...well });
    await expect(startHealthServer({ host: '127.0.0.1', port: server.port, ...well })).rejects.toThrow(
      'EADDRINUSE',
    );
  });
});
