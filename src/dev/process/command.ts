import { spawn } from 'node:child_process';
import { StackError } from '../stack-error.js';

const MOST_OUTPUT = 1_000_000;

export interface CommandOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
  /** Milliseconds until the command and its children are killed. */
  readonly limitMs: number;
  readonly signal?: AbortSignal;
  /** Also receives everything that the command prints. */
  readonly onOutput?: (text: string) => void;
}

export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program to its end, in a process group of its own so that a limit or an abort ends its
 * children too.
 * @throws StackError when it cannot be started, fails, or does not end in time; the message ends
 * with what it printed last.
 */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  options.signal?.throwIfAborted();
  const limit = AbortSignal.timeout(options.limitMs);
  const stop = options.signal ? AbortSignal.any([limit, options.signal]) : limit;
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    uid: options.uid,
    gid: options.gid,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      options.onOutput?.(text);
      output[stream] = (output[stream] + text).slice(-MOST_OUTPUT);
    });
  }
  const killGroup = () => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  stop.addEventListener('abort', killGroup, { once: true });
  try {
    const how = await new Promise<string | null>((resolve) => {
      child.once('error', (error) => resolve(`could not be started: ${error.message}`));
      child.once('close', (code, signal) =>
        resolve(code === 0 ? null : `failed (${signal ?? `exit code ${code}`})`),
      );
    });
    if (how === null) return output;
    options.signal?.throwIfAborted();
    const failure = limit.aborted ? `did not end within ${options.limitMs / 1_000} s` : how;
    const said = (output.stderr.trim() || output.stdout.trim()).split('\n').slice(-12).join('\n');
    throw new StackError(
      `\`${[command, ...args].join(' ')}\` ${failure}.${said ? ` It said:\n${said}` : ''}`,
    );
  } finally {
    stop.removeEventListener('abort', killGroup);
  }
}
