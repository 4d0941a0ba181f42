import { LockTimeout } from '../persistence/database-errors.js';

/**
 * Lets the first request of a payment id go ahead of its twins, within this process. The database
 * orders creates of one key by itself; this keeps requests that would only wait there from holding
 * the connections that others need. Once the first has ended the twins go together: they find its
 * row, or the database orders them.
 */
export class InFlight {
  /** Each resolves when the first has ended; false when it waited in vain for somebody else's lock. */
  private readonly firsts = new Map<string, Promise<boolean>>();

  /** @param waitMs longest wait for the first request, in milliseconds. */
  constructor(private readonly waitMs: number) {}

  /**
   * Runs `work` at once, or when the first work on `id` has ended.
   * @throws StillInFlight when that takes longer than the wait, or when the first one waited in vain
   * for a lock: `work` did not run. Else what `work` throws.
   */
  async run<T>(id: string, work: () => Promise<T>): Promise<T> {
    const first = this.firsts.get(id);
    if (first) {
      if (!(await endsWithin(first, this.waitMs))) throw new StillInFlight();
      return work();
    }
    const mine = work();
    const ended = mine.then(
      () => true,
      (error: unknown) => !(error instanceof LockTimeout),
    );
    this.firsts.set(id, ended);
    void ended.then(() => this.firsts.delete(id));
    return mine;
  }

  /** Ids whose first request is at work now. */
  get size(): number {
    return this.firsts.size;
  }
}

/** Another request works on the same payment for longer than the wait. */
export class StillInFlight extends Error {
  override readonly name = 'StillInFlight';
}

async function endsWithin(work: Promise<boolean>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
