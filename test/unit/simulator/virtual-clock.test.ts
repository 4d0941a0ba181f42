import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { VirtualClock } from '../../../src/simulator/virtual-clock.js';

let offsetMs: number;
let clock: VirtualClock;
let fired: string[];
const at = (name: string, inMs: number): void => clock.at(name, clock.now() + inMs, () => fired.push(name));

beforeEach(() => {
  vi.useFakeTimers();
  offsetMs = 0;
  fired = [];
  clock = new VirtualClock(
    () => Date.now(),
    () => offsetMs,
  );
});
afterEach(() => {
  clock.clear();
  vi.useRealTimers();
});

describe('the virtual clock', () => {
  it('calls back in the order of the times, as real time passes', () => {
    at('second', 2_000);
    at('first', 1_000);
    vi.advanceTimersByTime(999);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1_001);
    expect(fired).toEqual(['first', 'second']);
  });

  it('calls back at once what an advance has made due, and what is left at the rest of its time', () => {
    at('week', 7 * 86_400_000);
    at('month', 30 * 86_400_000);
    offsetMs = 8 * 86_400_000;
    clock.moved();
    expect(fired).toEqual(['week']);
    vi.advanceTimersByTime(22 * 86_400_000);
    expect(fired).toEqual(['week', 'month']);
  });

  it('a name that is set again counts once, at its later word', () => {
    at('payout', 1_000);
    at('payout', 5_000);
    vi.advanceTimersByTime(4_999);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['payout']);
  });

  it('a callback that sets another name anew keeps its old word from being carried out', () => {
    clock.at('first', clock.now() + 1_000, () => at('payout', 60_000));
    clock.at('payout', clock.now() + 2_000, () => fired.push('old word'));
    offsetMs = 5_000;
    clock.moved();
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(fired).toEqual(['payout']);
  });

  it('forgets what waits', () => {
    at('payout', 1_000);
    clock.clear();
    vi.advanceTimersByTime(5_000);
    expect(fired).toEqual([]);
  });
});
