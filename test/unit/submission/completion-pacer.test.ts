import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ArmedAborted, ArmedPayments, type ArmedEntry } from '../../../src/submission/armed-payments.js';
import { CompletionPacer } from '../../../src/submission/completion-pacer.js';

let gateIsBusy: boolean;
let armed: ArmedPayments;
let pacer: CompletionPacer;
let gone: string[];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  gateIsBusy = false;
  armed = new ArmedPayments();
  pacer = new CompletionPacer(armed, () => gateIsBusy);
  gone = [];
});
afterEach(() => vi.useRealTimers());

/** Both activities of one payment, armed. */
function armPair(paymentId: string): ArmedEntry {
  const input = { paymentId, lane: 'lane', version: 1 };
  armed.enter(input, 'begin');
  return armed.enter(input, 'submit');
}

const leave = (entry: ArmedEntry, name: string): void =>
  void pacer.leave(entry).then(() => gone.push(name)); // prettier-ignore
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe('the completion pacer', () => {
  it('lets both results of a pair go together, when the second is there', async () => {
    const entry = armPair('a');
    leave(entry, 'begin');
    await pass(60_000);
    expect(gone).toEqual([]);
    leave(entry, 'submit');
    await pass(0);
    expect(gone).toEqual(['begin', 'submit']);
    expect(armed.size).toBe(0);
  });

  it('lets the first result of a pair go when the second went back unpaced', async () => {
    const entry = armPair('a');
    leave(entry, 'begin');
    pacer.quit(entry);
    await pass(0);
    expect(gone).toEqual(['begin']);
    expect(armed.size).toBe(0);
    expect(pacer.waiting).toBe(0);
  });

  it('queues nothing for a pair of which both went back unpaced', async () => {
    const entry = armPair('a');
    pacer.quit(entry);
    pacer.quit(entry);
    expect(pacer.waiting).toBe(0);
    expect(armed.size).toBe(0);
  });

  it('holds results while the gate has work that tokens and calls allow', async () => {
    gateIsBusy = true;
    const entry = armPair('a');
    leave(entry, 'begin');
    leave(entry, 'submit');
    await pass(10_000);
    expect(gone).toEqual([]);
    gateIsBusy = false;
    await pass(25);
    expect(gone).toEqual(['begin', 'submit']);
  });

  it('holds a result no longer than 45 s, whatever the gate has', async () => {
    gateIsBusy = true;
    const entry = armPair('a');
    leave(entry, 'begin');
    leave(entry, 'submit');
    await pass(44_900);
    expect(gone).toEqual([]);
    await pass(200);
    expect(gone).toEqual(['begin', 'submit']);
  });

  it('holds results for 700 ms after a call that went out more than a second late', async () => {
    const entry = armPair('a');
    pacer.callStarted(1_001);
    leave(entry, 'begin');
    leave(entry, 'submit');
    await pass(690);
    expect(gone).toEqual([]);
    await pass(40);
    expect(gone).toEqual(['begin', 'submit']);
  });

  it('lets about 120 pairs a second go, in the order in which they became ready', async () => {
    for (let i = 0; i < 240; i++) {
      const entry = armPair(`p${i}`);
      leave(entry, `p${i}`);
      pacer.quit(entry);
    }
    await pass(1_000);
    expect(gone.length).toBeGreaterThanOrEqual(115);
    expect(gone.length).toBeLessThanOrEqual(125);
    expect(gone).toEqual(gone.map((_, i) => `p${i}`));
    await pass(1_100);
    expect(gone).toHaveLength(240);
  });

  it('lets results go at once while the worker drains', async () => {
    gateIsBusy = true;
    const entry = armPair('a');
    armed.drain(() => true);
    leave(entry, 'begin');
    leave(entry, 'submit');
    await pass(0);
    expect(gone).toEqual(['begin', 'submit']);
  });
});

describe('armed payments', () => {
  const input = (version: number, paymentId = 'a') => ({ paymentId, lane: 'lane', version });

  it('share one entry for one payment and version, and have another for another version', () => {
    const first = armed.enter(input(1), 'begin');
    expect(armed.enter(input(1), 'submit')).toBe(first);
    expect(armed.enter(input(2), 'begin')).not.toBe(first);
    expect(armed.size).toBe(2);
  });

  it('are told of the end in whichever version they wait', async () => {
    const entries = [armed.enter(input(1), 'begin'), armed.enter(input(2), 'submit')];
    const other = armed.enter(input(1, 'b'), 'begin');
    let otherEnded = false;
    void other.over.then(() => (otherEnded = true));
    armed.endAll('a', 'cancelled');
    expect(await Promise.all(entries.map((entry) => entry.over))).toEqual(['cancelled', 'cancelled']);
    expect(otherEnded).toBe(false);
  });

  it('that are in the middle of a call are not given up with the lease; all others are', async () => {
    const calling = armed.enter(input(1), 'submit');
    calling.firing = 1;
    const waiting = armed.enter(input(1, 'b'), 'submit');
    let aborted = 0;
    calling.aborted.catch(() => aborted++);
    armed.abortAll(new ArmedAborted('lease_lost'));
    await expect(waiting.aborted).rejects.toMatchObject({ reason: 'lease_lost' });
    expect(aborted).toBe(0);
  });

  it('are not taken by a draining worker, which keeps those it was told to keep', async () => {
    const kept = armed.enter(input(1), 'begin');
    const handed = armed.enter(input(1, 'b'), 'begin');
    armed.drain((entry) => entry === kept);
    await expect(handed.aborted).rejects.toMatchObject({ reason: 'draining' });
    expect(() => armed.enter(input(1, 'c'), 'begin')).toThrow(ArmedAborted);
    expect(armed.size).toBe(2);
  });

  it('give a reserved call back once when the last activity leaves', () => {
    const entry = armed.enter(input(1), 'submit');
    let freed = 0;
    entry.reserved = { free: () => freed++ } as unknown as typeof entry.reserved;
    expect(armed.leave(entry)).toBe(true);
    expect(freed).toBe(1);
    entry.freeCall();
    expect(freed).toBe(1);
  });

  it('hand a reserved call to one submit only, which gives it back itself', () => {
    const entry = armed.enter(input(1), 'submit');
    entry.reserved = { free: () => expect.unreachable() } as unknown as typeof entry.reserved;
    expect(entry.takeReserved()).toBe(true);
    expect(entry.takeReserved()).toBe(false);
    armed.leave(entry);
  });
});
