/**
 * A loop of one process: runs `step` again and again, each time after the last one ended and the time that
 * it asked for had passed. What `step` throws is told to `onFault`, and the loop goes on.
 */
export class Repeating {
  private stopped = false;
  private endWait: () => void = () => undefined;
  private loop: Promise<void> | null = null;

  constructor(
    private readonly parts: {
      /** @returns ms until the next run; undefined: `everyMs`. */
      readonly step: () => Promise<number | undefined>;
      readonly everyMs: number;
      readonly onFault: (error: unknown) => void;
    },
  ) {}

  /** The first run comes after `everyMs`. Twice: nothing. */
  start(): void {
    this.loop ??= this.run();
  }

  /** Ends a wait: the next run comes now. */
  nudge(): void {
    this.endWait();
  }

  /** No run begins after this; resolves when the one under way has ended. Twice: nothing. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.endWait();
    await this.loop;
  }

  private async run(): Promise<void> {
    let waitMs = this.parts.everyMs;
    while (!this.stopped) {
      await this.wait(waitMs);
      if (this.stopped) return;
      waitMs = this.parts.everyMs;
      try {
        waitMs = (await this.parts.step()) ?? waitMs;
      } catch (error) {
        this.parts.onFault(error);
      }
    }
  }

  private wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
