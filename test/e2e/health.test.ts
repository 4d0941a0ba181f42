import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Readiness } from '../../src/http/readiness.js';
import { Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterEach(async () => {
  // One that failed in the middle leaves the others a whole stack.
  for (const name of ['postgres', 'temporal', 'simulator', 'api', 'worker']) {
    if (rig.stack.pids[name] === undefined) await rig.stack.restart(name);
  }
  await untilBothReady();
});
afterAll(() => rig.stop());

interface Health {
  readonly status: number;
  readonly body: Readiness;
}

async function ask(process: 'api' | 'worker', path: '/livez' | '/readyz'): Promise<Health> {
  const base = process === 'api' ? rig.stack.health_url : rig.stack.worker_health_url;
  const answer = await fetch(`${base}${path}`);
  return { status: answer.status, body: (await answer.json()) as Readiness };
}
const ready = (process: 'api' | 'worker'): Promise<Health> => ask(process, '/readyz');

/** Alive whatever stands still: an outage must not restart every process. */
async function expectBothLive(): Promise<void> {
  for (const process of ['api', 'worker'] as const) expect((await ask(process, '/livez')).status).toBe(200);
}

async function untilBothReady(): Promise<void> {
  await rig.until('both are ready', async () => {
    const both = await Promise.all([ready('api'), ready('worker')]);
    return both.every((health) => health.status === 200);
  });
}

describe('with each dependency stopped', () => {
  it('none: both are ready, with every check', async () => {
    expect((await ready('api')).body).toEqual({ ok: true, checks: { serving: 'ok', postgres: 'ok' } });
    expect((await ready('worker')).body).toEqual({
      ok: true,
      checks: { serving: 'ok', postgres: 'ok', lease_and_clock: 'ok', pollers: 'ok' },
    });
  });

  it('Postgres: neither is ready, both live, both are ready when it is back', async () => {
    await rig.stack.stopProcess('postgres');
    for (const process of ['api', 'worker'] as const) {
      const health = await ready(process);
      expect([health.status, health.body.ok, health.body.checks['postgres']]).toEqual([503, false, 'failed']);
    }
    await expectBothLive();
    await rig.stack.restart('postgres');
    await untilBothReady();
  });

  it('Temporal: the API is ready and works, the worker is not, until it is back', async () => {
    await rig.stack.kill('temporal');
    await rig.until('the worker knows', async () => (await ready('worker')).status === 503);
    const { checks } = (await ready('worker')).body;
    expect(checks['postgres']).toBe('ok');
    // The SDK may go on waiting past the limit that it was given.
    expect(['failed', 'timeout']).toContain(checks['pollers']);
    expect((await ready('api')).status).toBe(200);
    const made = await rig.call('POST', '/v1/payments', {
      headers: { 'idempotency-key': 'without-temporal' },
      body: { amount: 1, currency: 'EUR', destination: 'acct_1', execute_at: new Date(Date.now() + 86_400_000).toISOString() },
    });
    expect(made.status).toBe(201);
    expect((await rig.cancel(made.body['id'] as string)).status).toBe(200);
    await expectBothLive();
    await rig.stack.restart('temporal');
    await untilBothReady();
  }); // prettier-ignore

  it('the provider: both are ready, since payments wait for it and nothing else does', async () => {
    await rig.stack.kill('simulator');
    expect([(await ready('api')).status, (await ready('worker')).status]).toEqual([200, 200]);
    await rig.stack.restart('simulator');
  });
});

describe('an API that is told to stop', () => {
  it('is not ready at once, still lives, and finishes what it has begun', async () => {
    const id = await rig.schedule(Date.now() + 3_600_000);
    // Somebody holds the payment, so that its cancel is under way for two seconds.
    const holding = rig.sql(
      `WITH held AS (SELECT id FROM payment WHERE id = $1 FOR UPDATE) SELECT pg_sleep(1.5) FROM held`,
      [id],
    );
    await rig.until('the hold', async () => {
      const [row] = await rig.sql<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'`,
      );
      return row?.n === 1;
    });
    const cancel = rig.cancel(id);
    const waiting = rig.until('the cancel waits', async () => {
      const [row] = await rig.sql<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
      );
      return row?.n === 1;
    });
    await waiting;
    const stopped = rig.stack.stopProcess('api');
    await rig.until('it says so', async () => {
      const { status, body } = await ready('api');
      return status === 503 && body.checks['serving'] === 'failed';
    }, 5_000); // prettier-ignore
    expect((await cancel).status).toBe(200);
    await holding;
    expect(await stopped).toBe('stopped');
    await rig.stack.restart('api');
    await untilBothReady();
  });
});
