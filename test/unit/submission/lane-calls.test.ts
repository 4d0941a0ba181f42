import { describe, expect, it } from 'vitest';
import { LaneCalls } from '../../../src/submission/lane-calls.js';

describe('the calls of a lane', () => {
  it('are taken up to the cap, and again when one was given back', () => {
    const calls = new LaneCalls('lane', 2);
    expect([calls.take(), calls.take(), calls.take()]).toEqual([true, true, false]);
    expect(calls.available).toBe(0);
    calls.free();
    expect(calls.available).toBe(1);
    expect(calls.take()).toBe(true);
  });

  it('wake all who wait when one is given back', async () => {
    const calls = new LaneCalls('lane', 1);
    calls.take();
    const waits = [calls.nextFree(), calls.nextFree()];
    calls.free();
    await Promise.all(waits);
    expect(calls.inFlight).toBe(0);
  });

  it('are none, not fewer, when the cap was lowered under those in flight', () => {
    const calls = new LaneCalls('lane', 3);
    for (let i = 0; i < 3; i++) calls.take();
    calls.cap = 1;
    expect(calls.available).toBe(0);
    calls.free();
    expect(calls.take()).toBe(false);
  });
});
