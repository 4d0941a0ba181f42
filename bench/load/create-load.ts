import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** What the process that sends creates is told. */
export const CreateLoad = z.object({
  url: z.url(),
  apiKey: z.string(),
  connections: z.number().int().min(1),
  /** Creates offered a second whatever the answers (an open loop); null: each connection sends when its answer came. */
  perSecond: z.number().positive().nullable(),
  seconds: z.number().positive(),
  /** Payments are due evenly over an hour from here, epoch ms. */
  dueFrom: z.number(),
  keyPrefix: z.string(),
});
export type CreateLoad = z.infer<typeof CreateLoad>;

/** What it answers. Times in milliseconds, of accepted creates alone. */
export const CreateLoadResult = z.object({
  seconds: z.number(),
  accepted: z.number(),
  /** Creates that found every connection busy and were not sent (open loop). */
  unsent: z.number(),
  /** Refusals that may be repeated (429, 503) and did not say when. */
  withoutRetryAfter: z.number(),
  /** Answers other than 201 by "status code", and "no answer". */
  refused: z.record(z.string(), z.number()),
  p50: z.number().nullable(),
  p99: z.number().nullable(),
  most: z.number().nullable(),
});
export type CreateLoadResult = z.infer<typeof CreateLoadResult>;

/** The process may take so long beyond the load itself: its start and its last answers. */
const BEYOND_MS = 60_000;

/** How the caller follows the process, for the books on CPU. */
export interface CreateLoadWatch {
  readonly signal: AbortSignal;
  readonly onStart: (pid: number) => void;
  /** The process still lives: what it used can be read. */
  readonly onResult: () => void;
}

/**
 * Sends creates from a process of its own, so that the bench's own work does not slow the clock that
 * measures.
 * @throws Error with what it printed when it fails.
 */
export async function sendCreates(load: CreateLoad, watch: CreateLoadWatch): Promise<CreateLoadResult> {
  const program = fileURLToPath(new URL('main-create-load.js', import.meta.url));
  const child = spawn(process.execPath, [program], {
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: load.seconds * 1_000 + BEYOND_MS,
    killSignal: 'SIGKILL',
    signal: watch.signal,
  });
  if (child.pid !== undefined) watch.onStart(child.pid);
  let printed = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    if (!printed.endsWith('\n')) return;
    watch.onResult();
    child.stdin.end();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  // Over stdin: the key must not stand in the list of processes.
  child.stdin.write(`${JSON.stringify(load)}\n`);
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode, signal) => resolve(exitCode ?? signal));
  });
  if (code !== 0) throw new Error(`The process that sends creates failed (${code}). ${complaint}`);
  return CreateLoadResult.parse(JSON.parse(printed));
}
