import { isStorageFault } from './storage-fault.js';

interface Waiting<In, Out> {
  readonly input: In;
  readonly resolve: (value: Out) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Joins calls of one turn of the event loop into one statement. While a batch is under way the
 * next one gathers, so a burst becomes few large statements and a lone call waits for nobody.
 */
export class Batcher<In, Out> {
  private queue: Waiting<In, Out>[] = [];
  private running = 0;
  private scheduled = false;
  /** Batches run so far, for the metrics. */
  batches = 0;

  /**
   * @param run answers for each input, in the same order; all or nothing. What it throws for one
   * input alone its caller gets; a fault of storage every caller of the batch.
   */
  constructor(
    private readonly run: (inputs: readonly In[]) => Promise<readonly Out[]>,
    private readonly limits: { readonly maxBatch: number; readonly maxRunning: number },
  ) {}

  add(input: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.queue.push({ input, resolve, reject });
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.scheduled || this.running >= this.limits.maxRunning || this.queue.length === 0) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      while (this.running < this.limits.maxRunning && this.queue.length > 0) {
        void this.runOne(this.queue.splice(0, this.limits.maxBatch));
      }
    });
  }

  private async runOne(batch: readonly Waiting<In, Out>[]): Promise<void> {
    this.running++;
    try {
      await this.runApart(batch);
    } finally {
      this.running--;
      this.schedule();
    }
  }

  /** One input that Postgres refuses undoes its whole batch: halves find it, and delay nobody else. */
  private async runApart(batch: readonly Waiting<In, Out>[]): Promise<void> {
    this.batches++;
    try {
      const answers = await this.run(batch.map((w) => w.input));
      batch.forEach((w, i) => w.resolve(answers[i] as Out));
    } catch (error) {
      if (batch.length === 1 || isStorageFault(error)) {
        for (const w of batch) w.reject(error);
        return;
      }
      const half = Math.ceil(batch.length / 2);
      await this.runApart(batch.slice(0, half));
      await this.runApart(batch.slice(half));
    }
  }
}
