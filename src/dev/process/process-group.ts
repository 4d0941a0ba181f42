import { StackError } from '../stack-error.js';
import type { StackFolder } from '../stack-folder.js';
import { SupervisedProcess, type ProcessEvent, type ProcessSpec } from './supervised-process.js';

export interface StoppedProcess {
  readonly name: string;
  readonly how: 'stopped' | 'killed';
  /** Milliseconds. */
  readonly tookMs: number;
}

export interface ProcessGroupOptions {
  /** See RESTART_DELAYS_MS; empty: a process that ends by itself stays down. */
  readonly restartDelaysMs: readonly number[];
  readonly onEvent: (event: ProcessEvent) => void;
  /** Names in the order in which processes are stopped; one entry may match several. */
  readonly stopOrder: readonly RegExp[];
}

/** The processes of one stack by name. */
export class ProcessGroup {
  readonly #processes = new Map<string, SupervisedProcess>();

  constructor(private readonly options: ProcessGroupOptions) {}

  /**
   * Starts a new process with a new log and resolves when it is ready.
   * @throws StackError when it does not get ready; it does not run then.
   */
  async run(spec: ProcessSpec, folder: StackFolder, signal: AbortSignal): Promise<void> {
    const { restartDelaysMs, onEvent } = this.options;
    const process = new SupervisedProcess(spec, { folder, restartDelaysMs, onEvent });
    process.log.rotate();
    this.#processes.set(spec.name, process);
    await process.start(signal);
  }

  /** @throws StackError naming the processes there are. */
  get(name: string): SupervisedProcess {
    const process = this.#processes.get(name);
    if (process) return process;
    const names = [...this.#processes.keys()].join(', ');
    throw new StackError(`There is no process ${name} in this stack; there are ${names}.`);
  }

  /** Names and process ids; null: it does not run now. */
  pids(): readonly (readonly [name: string, pid: number | null])[] {
    return [...this.#processes].map(([name, process]) => [name, process.pid]);
  }

  /** Stops every process in order, each within its limit. Twice: the second call finds nothing. */
  async stop(onStopped: (process: StoppedProcess) => void): Promise<void> {
    for (const pattern of this.options.stopOrder) {
      const together = [...this.#processes.values()].filter((process) => pattern.test(process.name));
      await Promise.all(
        together.map(async (process) => {
          const startedAt = performance.now();
          const how = await process.stop();
          if (how !== 'down') onStopped({ name: process.name, how, tookMs: performance.now() - startedAt });
        }),
      );
    }
  }

  /** SIGKILL for every process; resolves when all have ended. */
  async killAll(): Promise<void> {
    await Promise.all([...this.#processes.values()].map((process) => process.kill()));
  }

  /** As `killAll`, without waiting: for a program that is about to exit. */
  killNow(): void {
    for (const process of this.#processes.values()) process.killNow();
  }
}
