import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  admissionLimitsFor,
  AdmissionQueue,
  URGENCIES,
  type AdmissionLimits,
  type Urgency,
} from '../../../src/http/admission-queue.js';

const LIMITS: AdmissionLimits = {
  running: { work: 2, read: 3, cancel: 4 },
  waiting: { work: 3, read: 3, cancel: 3 },
  waitMs: 60_000,
};

/** Enters, and writes down when it was admitted or turned away. */
function enter(queue: AdmissionQueue, urgency: Urgency, name: string, log: string[]): void {
  const admitted = queue.enter(urgency);
  if (admitted === true) log.push(name);
  else void admitted.then((isIn) => log.push(isIn ? name : `not ${name}`));
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the admission queue', () => {
  it('lets work run up to its bound and never in the places of reads and cancels', async () => {
    const queue = new AdmissionQueue(LIMITS);
    const log: string[] = [];
    for (const name of ['w1', 'w2', 'w3']) enter(queue, 'work', name, log);
    for (const name of ['r1', 'r2']) enter(queue, 'read', name, log);
    for (const name of ['c1', 'c2']) enter(queue, 'cancel', name, log);
    expect(log).toEqual(['w1', 'w2', 'r1', 'c1']);
  });

  it('gives a free place to the most pressing, and among equals to the first', async () => {
    const queue = new AdmissionQueue(LIMITS);
    const log: string[] = [];
    for (const name of ['w1', 'w2', 'w3', 'w4']) enter(queue, 'work', name, log);
    for (const name of ['c1', 'c2', 'c3']) enter(queue, 'cancel', name, log);
    queue.leave('work');
    await settled();
    expect(log).toEqual(['w1', 'w2', 'c1', 'c2', 'c3']);
    queue.leave('cancel');
    queue.leave('cancel');
    queue.leave('cancel');
    await settled();
    expect(log.slice(5)).toEqual(['w3']);
    queue.leave('work');
    await settled();
    expect(log.slice(6)).toEqual(['w4']);
  });

  it('refuses at once whoever finds its queue full, and says so beforehand', async () => {
    const queue = new AdmissionQueue(LIMITS);
    const log: string[] = [];
    for (const name of ['w1', 'w2', 'w3', 'w4', 'w5']) {
      expect(queue.isFull('work')).toBe(false);
      enter(queue, 'work', name, log);
    }
    expect([queue.isFull('work'), queue.isFull('read'), queue.isFull('cancel')]).toEqual([
      true,
      false,
      false,
    ]);
    enter(queue, 'work', 'w6', log);
    await settled();
    expect(log).toEqual(['w1', 'w2', 'not w6']);
  });

  it('turns away whoever waited too long, and leaves nothing of it behind', async () => {
    const queue = new AdmissionQueue({ ...LIMITS, waitMs: 1 });
    const log: string[] = [];
    for (const name of ['w1', 'w2', 'w3']) enter(queue, 'work', name, log);
    await expect.poll(() => log).toContain('not w3');
    queue.leave('work');
    enter(queue, 'work', 'w4', log);
    expect(log).toEqual(['w1', 'w2', 'not w3', 'w4']);
  });

  it('never passes a bound, loses a place or leaves one idle while somebody waits for it', async () => {
    const step = fc.record({ urgency: fc.constantFrom(...URGENCIES), leaves: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const queue = new AdmissionQueue(LIMITS);
        const running: Urgency[] = [];
        for (const { urgency, leaves } of steps) {
          const [first] = running;
          if (leaves && first !== undefined) {
            running.shift();
            queue.leave(first);
          } else {
            const admitted = queue.enter(urgency);
            if (admitted === true) running.push(urgency);
            else void admitted.then((isIn) => (isIn ? running.push(urgency) : undefined));
          }
          await settled();
          const count = (...of: Urgency[]): number => running.filter((one) => of.includes(one)).length;
          expect(count('work')).toBeLessThanOrEqual(2);
          expect(count('work', 'read')).toBeLessThanOrEqual(3);
          expect(running.length).toBeLessThanOrEqual(4);
        }
        while (running.length > 0) {
          queue.leave(running.shift()!);
          await settled();
        }
        expect(URGENCIES.map((urgency) => queue.enter(urgency))).toEqual([true, true, true]);
      }),
      { numRuns: 200 },
    );
  });
});

describe('the limits for a pool', () => {
  it.each([2, 3, 4, 12, 50])('of %d connections keep one for cancels, and let everything run', (size) => {
    const { running } = admissionLimitsFor(size);
    expect(running.work).toBeGreaterThanOrEqual(1);
    expect(running.read).toBeGreaterThanOrEqual(running.work);
    if (size > 1) expect(running.read).toBeLessThan(running.cancel);
    expect(running.cancel).toBe(size);
  });
});
