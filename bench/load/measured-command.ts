import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { processMemory, processTimes } from '../sampling/proc.js';
import type { World } from '../scenario.js';

const LOOK_EVERY_MS = 50;

export interface MeasuredCommand<R> {
  /** Of the whole command, start included. */
  readonly seconds: number;
  /** Processor time of its process. */
  readonly cpuSeconds: number;
  /** Largest resident size of its process. */
  readonly peakBytes: number;
  readonly exitCode: number | null;
  readonly report: R;
}

const ROOT = new URL('../../../', import.meta.url);
const Scripts = z.object({ scripts: z.object({ payments: z.templateLiteral(['node ', z.string()]) }) });

/** What `npm run payments` gives to node. */
function commandLine(): readonly string[] {
  const { scripts } = Scripts.parse(JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')));
  return scripts.payments.split(' ').slice(1);
}

/**
 * Runs a command of the operations program on the world's stack, as a person would, and watches its
 * memory and its processor time.
 * @param args with `--json`. @param form what it prints.
 * @throws Error with its complaint when it printed nothing, or nothing of that form.
 */
export async function measureCommand<R>(
  world: World,
  args: readonly string[],
  form: z.ZodType<R>,
): Promise<MeasuredCommand<R>> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...commandLine(), ...args], {
    cwd: fileURLToPath(ROOT),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...world.stack.environment },
    signal: world.signal,
  });
  let peakBytes = 0;
  let cpuMs = 0;
  const look = setInterval(() => {
    if (child.pid === undefined) return;
    peakBytes = Math.max(peakBytes, processMemory(child.pid, false)?.peakRss ?? 0);
    cpuMs = Math.max(cpuMs, processTimes(child.pid)?.ownMs ?? 0);
  }, LOOK_EVERY_MS);
  if (child.pid !== undefined) world.load.watch('bench', child.pid);
  let printed = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (printed === '') throw new Error(`The command printed nothing (${exitCode}). ${complaint}`);
    const seconds = (performance.now() - startedAt) / 1_000;
    return {
      seconds,
      cpuSeconds: cpuMs / 1_000,
      peakBytes,
      exitCode,
      report: form.parse(JSON.parse(printed)),
    };
  } finally {
    clearInterval(look);
  }
}
