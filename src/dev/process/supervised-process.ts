import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { LogFile } from './log-file.js';
import { showDuration, untilOrTimeout } from '../pacing.js';
import { StackError } from '../stack-error.js';
import { forgetChild, recordChild, type StackFolder } from '../stack-folder.js';

/** How one process of the stack is started, known to be ready, and stopped. Times in milliseconds. */
export interface ProcessSpec {
  /** Name of its log, of its pid file and in every message. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Runs before every spawn, a restart included. */
  readonly prepare?: (signal: AbortSignal) => Promise<void>;
  /** Resolves when the process serves; polls until `signal` aborts. */
  readonly ready: (output: ProcessOutput, signal: AbortSignal) => Promise<void>;
  readonly readyWithinMs: number;
  readonly stopSignal: 'SIGTERM' | 'SIGINT';
  /** After this the process is killed. */
  readonly stopWithinMs: number;
}

export interface ProcessOutput {
  /** Everything that this start has written so far. */
  text(): string;
}

export type ProcessEvent =
  | { readonly kind: 'ended'; readonly name: string; readonly how: string; readonly log: string }
  | { readonly kind: 'restarted'; readonly name: string }
  | { readonly kind: 'given-up'; readonly name: string; readonly log: string; readonly why: string };

/**
 * Waits before the first, second, … restart of a process that ended by itself. A process that lived
 * for a minute begins at the first again; after the last it stays down.
 */
export const RESTART_DELAYS_MS: readonly number[] = [250, 1_000, 4_000, 10_000];
const FORGIVEN_AFTER_MS = 60_000;
const BOUND_LOG_EVERY_MS = 10_000;

export interface SupervisionOptions {
  readonly folder: StackFolder;
  /** Empty: a process that ends by itself stays down. */
  readonly restartDelaysMs: readonly number[];
  readonly onEvent: (event: ProcessEvent) => void;
}

interface Running {
  readonly pid: number;
  readonly process: ChildProcess;
  /** Resolves to "exit code 1" or "SIGKILL" when it has ended. */
  readonly ended: Promise<string>;
  readonly isEnded: () => boolean;
}

/** One process of the stack and its life: start, unexpected end, restart, stop. */
export class SupervisedProcess {
  readonly log: LogFile;
  #running: Running | null = null;
  /** Aborted by whoever takes the process down; ends waits and restarts. */
  #life = new AbortController();
  #restarts = 0;
  #readyAt = 0;

  constructor(
    readonly spec: ProcessSpec,
    private readonly options: SupervisionOptions,
  ) {
    this.log = new LogFile(options.folder.logs, spec.name);
  }

  get name(): string {
    return this.spec.name;
  }

  /** The process id while it runs. */
  get pid(): number | null {
    return this.#running && !this.#running.isEnded() ? this.#running.pid : null;
  }

  /**
   * Starts the process and waits until it is ready. Twice: the second call does nothing.
   * @throws StackError when it ends or is not ready in time; nothing of it runs then.
   */
  async start(signal: AbortSignal): Promise<void> {
    if (this.pid !== null) return;
    this.#life = new AbortController();
    this.#restarts = 0;
    await this.#launch(AbortSignal.any([signal, this.#life.signal]));
  }

  /** Asks the process to end and waits; kills it after its limit. Twice: the second call does nothing. */
  async stop(): Promise<'down' | 'stopped' | 'killed'> {
    this.#life.abort(new StackError(`${this.name} is being stopped.`));
    const running = this.#running;
    if (!running || running.isEnded()) return 'down';
    signalProcess(running.pid, this.spec.stopSignal);
    const ended = await untilOrTimeout(running.isEnded, this.spec.stopWithinMs);
    if (!ended) await killAndWait(running);
    return ended ? 'stopped' : 'killed';
  }

  /** Ends the process without asking; it stays down until the next start. */
  async kill(): Promise<void> {
    this.#life.abort(new StackError(`${this.name} was killed on purpose.`));
    if (this.#running) await killAndWait(this.#running);
  }

  /** As `kill`, without waiting: for a program that is about to exit. */
  killNow(): void {
    this.#life.abort(new StackError(`${this.name} was killed on purpose.`));
    if (this.pid !== null && this.pid > 0) signalProcess(-this.pid, 'SIGKILL');
  }

  /** Freezes (SIGSTOP) or thaws (SIGCONT) the process. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.pid === null) throw new StackError(`${this.name} does not run.`);
    signalProcess(this.pid, signal);
  }

  async #launch(signal: AbortSignal): Promise<void> {
    await this.spec.prepare?.(signal);
    signal.throwIfAborted();
    const from = this.log.size();
    const running = this.#spawn();
    this.#running = running;
    recordChild(this.options.folder, this.name, running.pid);
    const limit = AbortSignal.timeout(this.spec.readyWithinMs);
    const givenUp = new AbortController();
    const waiting = AbortSignal.any([signal, limit, givenUp.signal]);
    try {
      const ended = running.ended.then((how) => {
        throw new StackError(`${this.name} ended while it started (${how}).${this.#logEnd(from)}`);
      });
      await Promise.race([this.spec.ready({ text: () => this.log.since(from) }, waiting), ended]);
    } catch (error) {
      givenUp.abort(error);
      await killAndWait(running);
      forgetChild(this.options.folder, this.name);
      signal.throwIfAborted();
      if (!limit.aborted) throw error;
      const within = showDuration(this.spec.readyWithinMs);
      throw new StackError(`${this.name} was not ready within ${within}.${this.#logEnd(from)}`);
    }
    this.#readyAt = Date.now();
    this.#watch(running);
  }

  #logEnd(from: number): string {
    const tail = this.log.tail(12, from);
    return tail ? ` Its log ${this.log.path} ends with:\n${tail}` : ` It wrote nothing to ${this.log.path}.`;
  }

  #spawn(): Running {
    const output = this.log.open();
    try {
      const child = spawn(this.spec.command, this.spec.args, {
        cwd: this.spec.cwd,
        env: this.spec.env,
        // A group of its own: Ctrl-C at the terminal reaches this program alone, which stops the
        // processes in order.
        detached: true,
        stdio: ['ignore', output, output],
        ...this.spec.user,
      });
      let isEnded = false;
      const ended = new Promise<string>((resolve) => {
        child.once('error', (error) => resolve(error.message));
        child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
      }).then((how) => {
        isEnded = true;
        return how;
      });
      // Absent only when the program could not be started; `ended` then tells why.
      return { pid: child.pid ?? 0, process: child, ended, isEnded: () => isEnded };
    } finally {
      closeSync(output);
    }
  }

  #watch(running: Running): void {
    const bound = setInterval(() => this.log.bound(), BOUND_LOG_EVERY_MS);
    bound.unref();
    void running.ended.then((how) => {
      clearInterval(bound);
      forgetChild(this.options.folder, this.name);
      if (this.#life.signal.aborted) return;
      this.options.onEvent({ kind: 'ended', name: this.name, how, log: this.log.path });
      return this.#restart(this.#life.signal);
    });
  }

  async #restart(life: AbortSignal): Promise<void> {
    if (Date.now() - this.#readyAt > FORGIVEN_AFTER_MS) this.#restarts = 0;
    let why = 'it is not to be restarted';
    for (;;) {
      const delayMs = this.options.restartDelaysMs[this.#restarts];
      if (delayMs === undefined) break;
      this.#restarts++;
      try {
        await sleep(delayMs, undefined, { signal: life });
        await this.#launch(life);
        this.options.onEvent({ kind: 'restarted', name: this.name });
        return;
      } catch (error) {
        if (life.aborted) return; // Taken down meanwhile: nothing to report.
        why = error instanceof Error ? error.message : String(error);
      }
    }
    this.options.onEvent({ kind: 'given-up', name: this.name, log: this.log.path, why });
  }
}

/** Signals a process that this one started. Its end between look and signal is no error. */
function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function killAndWait(running: Running): Promise<void> {
  // The whole group: a child of the process must not outlive it.
  if (!running.isEnded() && running.pid > 0) signalProcess(-running.pid, 'SIGKILL');
  await running.ended;
}
