import { describe, expect, it } from 'vitest';
import { runPlan, stepMaker } from '../../../src/dev/stack-plan.js';

describe('plan of a start', () => {
  it('runs steps in order and concurrent ones together', async () => {
    const order: string[] = [];
    const step = stepMaker(new AbortController());
    let openGate = () => {};
    const gate = new Promise<void>((resolve) => (openGate = resolve));
    await runPlan([
      step('first', async () => void order.push('first')),
      {
        title: 'both',
        concurrent: true,
        steps: [
          step('waits for the other', async () => {
            await gate;
            order.push('second');
          }),
          step('opens', async () => openGate()),
        ],
      },
      step('last', async () => void order.push('last')),
    ]);
    expect(order).toEqual(['first', 'second', 'last']);
  });

  it('ends the waits of the others at the first failure, begins nothing more, and tells that failure', async () => {
    const ending = new AbortController();
    const step = stepMaker(ending);
    const done: string[] = [];
    const failure = new Error('no disk');
    const plan = runPlan([
      {
        title: 'both',
        concurrent: true,
        steps: [
          step('waits', async () => {
            await new Promise((_, reject) => {
              ending.signal.addEventListener('abort', () => reject(ending.signal.reason as Error));
            }).finally(() => done.push('settled'));
          }),
          step('fails', async () => {
            throw failure;
          }),
        ],
      },
      step('later', async () => void done.push('later')),
    ]);
    await expect(plan).rejects.toBe(failure);
    expect(ending.signal.reason).toBe(failure);
    expect(done).toEqual(['settled']);
  });
});
