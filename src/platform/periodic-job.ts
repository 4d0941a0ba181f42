/**
 * Work that a process does at once and then every `everyMs`, never twice at the same time: who asks while
 * a run is under way gets that one. The timer keeps no process alive.
 */
export class PeriodicJob<T> {
  private running: Promise<T> | null = null;
  private timer: NodeJS.Timeout | null = null;

  /** @param work must not throw: nobody waits for a run of the timer. */
  constructor(
    private readonly work: () => Promise<T>,
    private readonly everyMs: number,
  ) {}

  /** Runs now and every `everyMs`. */
  start(): void {
    this.timer = setInterval(() => void this.run(), this.everyMs);
    this.timer.unref();
    void this.run();
  }

  /** No run of the timer begins after this; resolves when the one under way has ended. Twice: nothing. */
  async stop(): Promise<void> {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
    await this.running;
  }

  /** One run, or the one that is under way. */
  run(): Promise<T> {
    this.running ??= this.work().finally(() => {
      this.running = null;
    });
    return this.running;
  }
}
