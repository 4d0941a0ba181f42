import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runPayments } from '../../src/ops/program.js';

export interface Ran {
  readonly exitCode: number;
  /** Standard output and standard error, a line feed after each text. */
  readonly out: string;
  readonly err: string;
  /** Standard output as JSON. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly json: () => any;
}

/**
 * Runs one command of the payments program in this process, with this environment and nothing of
 * the test's own. Unless the environment names a local stack there is none.
 */
export async function payments(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'payments-test-cli-'));
  let out = '';
  let err = '';
  try {
    const exitCode = await runPayments(args, {
      env: { PAYMENTS_LOCAL_DIR: join(folder, 'none'), ...env },
      folder,
      isInteractive: false,
      out: (text) => void (out += `${text}\n`),
      err: (text) => void (err += `${text}\n`),
    });
    return { exitCode, out, err, json: () => JSON.parse(out) as unknown };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
