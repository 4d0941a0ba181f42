import { describe, expect, it } from 'vitest';
import { readiness } from '../../../src/http/readiness.js';

const hanging = (): Promise<never> => new Promise<never>(() => undefined);

describe('readiness', () => {
  it('is ok when every required check passes', async () => {
    const ready = readiness({ postgres: { required: true, run: () => Promise.resolve() } });
    expect(await ready()).toEqual({ ok: true, checks: { postgres: 'ok' } });
  });

  it('shows Temporal down and stays ready, since create, get and cancel work without it', async () => {
    const ready = readiness({
      postgres: { required: true, run: () => true },
      temporal: { required: false, run: () => Promise.reject(new Error('down')) },
    });
    expect(await ready()).toEqual({ ok: true, checks: { postgres: 'ok', temporal: 'failed' } });
  });

  it('is not ok when a required check answers false, throws or does not answer in time', async () => {
    const ready = readiness(
      {
        draining: { required: true, run: () => false },
        schema: {
          required: true,
          run: () => {
            throw new Error('x');
          },
        },
        postgres: { required: true, run: hanging },
      },
      5,
    );
    expect(await ready()).toEqual({
      ok: false,
      checks: { draining: 'failed', schema: 'failed', postgres: 'timeout' },
    });
  });

  it.each([
    ['standby', false],
    ['schema_older', false],
    ['schema_newer', true],
  ] as const)('says %s, and is ready: %s', async (verdict, ok) => {
    const ready = readiness({ postgres: { required: true, run: () => Promise.resolve(verdict) } });
    expect(await ready()).toEqual({ ok, checks: { postgres: verdict } });
  });

  it('does not start a check again while it still hangs', async () => {
    let started = 0;
    let end: () => void = () => undefined;
    const ready = readiness(
      {
        postgres: {
          required: true,
          run: () => {
            started++;
            return new Promise<void>((resolve) => (end = resolve));
          },
        },
      },
      5,
    );
    expect((await ready()).checks).toEqual({ postgres: 'timeout' });
    expect((await ready()).checks).toEqual({ postgres: 'timeout' });
    expect(started).toBe(1);
    const answer = ready();
    end();
    expect((await answer).checks).toEqual({ postgres: 'ok' });
  });
});
