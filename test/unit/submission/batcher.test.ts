import { describe, expect, it } from 'vitest';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../../../src/persistence/database-errors.js';
import { Batcher } from '../../../src/submission/batcher.js';

const turn = (): Promise<void> => new Promise((next) => setImmediate(next));

/** A batcher whose batches answer when the test says so. */
function held(limits: { maxBatch: number; maxRunning: number }) {
  const batches: number[][] = [];
  const ends: ((error?: Error) => void)[] = [];
  const batcher = new Batcher<number, number>((inputs) => {
    batches.push([...inputs]);
    return new Promise((resolve, reject) =>
      ends.push((error) => (error ? reject(error) : resolve(inputs.map((n) => n * 10)))),
    );
  }, limits);
  return { batcher, batches, end: (i: number, error?: Error) => ends[i]?.(error) };
}

describe('the batcher', () => {
  it('joins the calls of one turn into one batch, in order, and answers each caller', async () => {
    const { batcher, batches, end } = held({ maxBatch: 10, maxRunning: 1 });
    const answers = [3, 1, 2].map((n) => batcher.add(n));
    await turn();
    expect(batches).toEqual([[3, 1, 2]]);
    end(0);
    expect(await Promise.all(answers)).toEqual([30, 10, 20]);
  });

  it('gathers the next batch while one is under way', async () => {
    const { batcher, batches, end } = held({ maxBatch: 10, maxRunning: 1 });
    const first = batcher.add(1);
    await turn();
    const later = [batcher.add(2), batcher.add(3)];
    await turn();
    expect(batches).toEqual([[1]]);
    end(0);
    await first;
    await turn();
    await turn();
    expect(batches).toEqual([[1], [2, 3]]);
    end(1);
    expect(await Promise.all(later)).toEqual([20, 30]);
  });

  it('never makes a batch larger than its limit, nor runs more at once', async () => {
    const { batcher, batches, end } = held({ maxBatch: 2, maxRunning: 2 });
    const answers = [1, 2, 3, 4, 5].map((n) => batcher.add(n));
    await turn();
    expect(batches).toEqual([[1, 2], [3, 4]]); // prettier-ignore
    end(1);
    await Promise.all(answers.slice(2, 4));
    await turn();
    await turn();
    expect(batches).toHaveLength(3);
    end(0);
    end(2);
    expect(await Promise.all(answers)).toEqual([10, 20, 30, 40, 50]);
  });

  it('finds the one input that breaks its batch, and answers the others', async () => {
    let runs = 0;
    const batcher = new Batcher<number, number>(
      (inputs) => {
        runs++;
        return inputs.includes(13)
          ? Promise.reject(new Error('poison'))
          : Promise.resolve(inputs.map((n) => n * 10));
      },
      { maxBatch: 64, maxRunning: 1 },
    );
    const answers = Array.from({ length: 32 }, (_, n) => batcher.add(n));
    for (const [n, answer] of answers.entries()) {
      if (n === 13) await expect(answer).rejects.toThrow('poison');
      else expect(await answer).toBe(n * 10);
    }
    expect(runs).toBeLessThanOrEqual(1 + 2 * 5);
  });

  it.each([StorageUnavailable, OutcomeUnknown, LockTimeout])(
    'asks once when the way to Postgres is at fault, not the input',
    async (Fault) => {
      let runs = 0;
      const batcher = new Batcher<number, number>(
        () => {
          runs++;
          return Promise.reject(new Fault('away'));
        },
        { maxBatch: 64, maxRunning: 1 },
      );
      const answers = await Promise.allSettled([1, 2, 3].map((n) => batcher.add(n)));
      for (const answer of answers) expect(answer).toMatchObject({ status: 'rejected' });
      expect(runs).toBe(1);
    },
  );

  it('gives a fault of storage to every caller of its batch, and goes on with the next', async () => {
    const { batcher, end } = held({ maxBatch: 2, maxRunning: 1 });
    const failed = [batcher.add(1), batcher.add(2)];
    const well = batcher.add(3);
    await turn();
    end(0, new StorageUnavailable('away'));
    for (const answer of failed) await expect(answer).rejects.toThrow('away');
    await turn();
    await turn();
    end(1);
    expect(await well).toBe(30);
  });
});
