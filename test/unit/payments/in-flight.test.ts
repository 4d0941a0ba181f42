import { describe, expect, it } from 'vitest';
import { InFlight, StillInFlight } from '../../../src/payments/in-flight.js';

const LONG_MS = 60_000;

/** A piece of work that ends when it is told to. */
function work() {
  let end: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const ended = new Promise<string>((resolve, reject) => {
    end = () => resolve('done');
    fail = reject;
  });
  let started = false;
  return {
    run: () => {
      started = true;
      return ended;
    },
    end: () => end(),
    fail: (error: Error) => fail(error),
    hasStarted: () => started,
  };
}

describe('work on one id', () => {
  it('runs one after the other, in the order of asking', async () => {
    const inFlight = new InFlight(LONG_MS);
    const [first, second] = [work(), work()];
    const answers = [inFlight.run('a', first.run), inFlight.run('a', second.run)];
    await expect.poll(() => first.hasStarted()).toBe(true);
    expect(second.hasStarted()).toBe(false);
    first.end();
    await expect.poll(() => second.hasStarted()).toBe(true);
    second.end();
    expect(await Promise.all(answers)).toEqual(['done', 'done']);
  });

  it('does not wait for work on another id', async () => {
    const inFlight = new InFlight(LONG_MS);
    const first = work();
    const running = inFlight.run('a', first.run);
    expect(await inFlight.run('b', () => Promise.resolve(1))).toBe(1);
    first.end();
    await running;
  });

  it('goes on after one before it failed, and hands its own failure to its caller', async () => {
    const inFlight = new InFlight(LONG_MS);
    const first = work();
    const failing = inFlight.run('a', first.run);
    const after = inFlight.run('a', () => Promise.resolve(2));
    first.fail(new Error('on purpose'));
    await expect(failing).rejects.toThrow('on purpose');
    expect(await after).toBe(2);
  });

  it('is given up after the wait, and those behind still wait for the one at work', async () => {
    const inFlight = new InFlight(5);
    const [first, second] = [work(), work()];
    const running = inFlight.run('a', first.run);
    await expect(inFlight.run('a', second.run)).rejects.toThrow(StillInFlight);
    await expect(inFlight.run('a', second.run)).rejects.toThrow(StillInFlight);
    expect(second.hasStarted()).toBe(false);
    first.end();
    expect(await running).toBe('done');
    expect(await inFlight.run('a', () => Promise.resolve(3))).toBe(3);
  });

  it('leaves nothing behind', async () => {
    const inFlight = new InFlight(LONG_MS);
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => inFlight.run(`id-${i % 7}`, () => Promise.resolve(i))),
    );
    await Promise.resolve();
    expect(inFlight.size).toBe(0);
  });
});
