/**
 * Lets one request at a time work on a payment id, within this process. The database orders
 * creates of one key by itself; this keeps requests that would only wait there from holding the
 * connections that others need.
 */
export class InFlight {
  private readonly tails = new Map<string, Promise<void>>();

  /** @param waitMs longest wait for the requests before, in milliseconds. */
  constructor(private readonly waitMs: number) {}

  /**
   * Runs `work` when every earlier work on `id` has ended.
   * @throws StillInFlight when that takes longer than the wait: `work` did not run. Else what
   * `work` throws.
   */
  async run<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.tails.get(id);
    let done: () => void = () => undefined;
    const mine = new Promise<void>((resolve) => (done = resolve));
    const tail = before ? before.then(() => mine) : mine;
    this.tails.set(id, tail);
    // Not in the finally below: a request that gives up leaves those before it at work.
    void tail.then(() => {
      if (this.tails.get(id) === tail) this.tails.delete(id);
    });
    try {
      if (before && !(await endsWithin(before, this.waitMs))) throw new StillInFlight();
      return await work();
    } finally {
      done();
    }
  }

  /** Ids in work or waited for now. */
  get size(): number {
    return this.tails.size;
  }
}

/** Another request works on the same payment for longer than the wait. */
export class StillInFlight extends Error {
  override readonly name = 'StillInFlight';
}

async function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  try {
    return await Promise.race([work.then(() => true as const), late]);
  } finally {
    clearTimeout(timer);
  }
}
