/** Calls of one lane that this worker has in flight or reserved: a hanging provider holds only its own. */
export class LaneCalls {
  private taken = 0;
  private waiters: (() => void)[] = [];

  constructor(
    readonly lane: string,
    /** Most calls in flight at once, from the lane's row. */
    public cap: number,
  ) {}

  get inFlight(): number {
    return this.taken;
  }

  get available(): number {
    return Math.max(0, this.cap - this.taken);
  }

  /** Takes one call if there is one. */
  take(): boolean {
    if (this.taken >= this.cap) return false;
    this.taken++;
    return true;
  }

  /** Gives one call back and wakes whoever waits for it. */
  free(): void {
    this.taken--;
    const waiting = this.waiters;
    this.waiters = [];
    for (const wake of waiting) wake();
  }

  /** Resolves when a call is given back. */
  nextFree(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve));
  }
}
