import { describe, expect, it } from 'vitest';
import { Repeating } from '../../../src/platform/repeating.js';

describe('a repeating step', () => {
  it('goes on after a fault, which is told', async () => {
    const faults: unknown[] = [];
    let runs = 0;
    const third = Promise.withResolvers<void>();
    const loop = new Repeating({
      step: async () => {
        if (++runs === 1) throw new Error('first');
        if (runs === 3) third.resolve();
        return undefined;
      },
      everyMs: 1,
      onFault: (error) => faults.push(error),
    });
    loop.start();
    await third.promise;
    await loop.stop();
    expect(faults).toEqual([new Error('first')]);
  });

  it('never runs beside itself, and has ended when stop resolves', async () => {
    const entered = Promise.withResolvers<void>();
    const leave = Promise.withResolvers<void>();
    let running = 0;
    const loop = new Repeating({
      step: async () => {
        running++;
        entered.resolve();
        await leave.promise;
        running--;
        return undefined;
      },
      everyMs: 1,
      onFault: () => undefined,
    });
    loop.start();
    loop.start();
    await entered.promise;
    loop.nudge();
    expect(running).toBe(1);
    const stopped = loop.stop();
    leave.resolve();
    await stopped;
    expect(running).toBe(0);
  });

  it('does not wait out its time when it is nudged or stopped', async () => {
    const ran = Promise.withResolvers<void>();
    const loop = new Repeating({
      step: async () => {
        ran.resolve();
        return undefined;
      },
      everyMs: 3_600_000,
      onFault: () => undefined,
    });
    loop.start();
    loop.nudge();
    await ran.promise;
    await loop.stop();
  });
});
