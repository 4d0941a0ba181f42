import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { SimulatorControl } from './simulator-control.js';

export type * from './simulator-control.js';

/** Runs the provider simulator as its own process, and speaks to its control port. */

export interface SimulatorOptions {
  /** Bearer keys: default one of each profile, in accounts `acct_a` to `acct_d` and `acct_t`. */
  readonly profileKeys?: string;
  /** Until an idempotency key is forgotten, ms; default 24 h. */
  readonly keyLifeMs?: number;
  /** Kept by whoever names it; without it the ledger is removed by `stop`. */
  readonly ledgerFile?: string;
  /** More environment, for example a preloaded clock library. */
  readonly env?: Readonly<Record<string, string>>;
}

/** No simulator outlives a test run that ends early. */
const children = new Set<ChildProcess>();
process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));

const API_KEYS = Object.freeze({
  A: 'sk_test_a',
  B: 'sk_test_b',
  C: 'sk_test_c',
  D: 'sk_test_d',
  T: 'sk_test_t',
});
const ONE_OF_EACH = Object.entries(API_KEYS)
  .map(([profile, key]) => `${key}:${profile}`)
  .join(',');

/** Starts a simulator on free ports of the loopback interface and waits until it listens. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const simulator = new Simulator(options);
  await simulator.start();
  return simulator;
}

export class Simulator extends SimulatorControl {
  /** Where adapters call. Stays the same over `restart`. */
  url = '';
  controlUrl = '';
  readonly controlToken = randomBytes(16).toString('hex');
  readonly apiKeys = API_KEYS;
  readonly ledgerFile: string;
  private readonly folder: string | null;
  private child: ChildProcess | null = null;

  constructor(private readonly options: SimulatorOptions) {
    super(() => ({ controlUrl: this.controlUrl, controlToken: this.controlToken }));
    this.folder = options.ledgerFile === undefined ? mkdtempSync(join(tmpdir(), 'simulator-')) : null;
    this.ledgerFile = options.ledgerFile ?? join(this.folder ?? '', 'ledger.jsonl');
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Starts the process: on free ports at first, on the same ones later. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [simulatorEntry()], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...this.options.env,
        SIMULATOR_PORT: portOf(this.url),
        SIMULATOR_CONTROL_PORT: portOf(this.controlUrl),
        SIMULATOR_CONTROL_TOKEN: this.controlToken,
        SIMULATOR_LEDGER_FILE: this.ledgerFile,
        SIMULATOR_PROFILE_KEYS: this.options.profileKeys ?? ONE_OF_EACH,
        ...(this.options.keyLifeMs !== undefined && {
          SIMULATOR_KEY_LIFE_MS: String(this.options.keyLifeMs),
        }),
      },
    });
    this.child = child;
    children.add(child);
    child.once('exit', () => children.delete(child));
    let complaint = '';
    child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
    const line = await Promise.race([
      once(createInterface(child.stdout), 'line').then(([text]) => text as string),
      once(child, 'close').then(() => null),
    ]);
    if (line === null) throw new Error(`The simulator ended before it was ready: ${complaint}`);
    const ready = JSON.parse(line) as { url: string; controlUrl: string };
    this.url = ready.url;
    this.controlUrl = ready.controlUrl;
  }

  /** Ends the process and waits for it. @returns its exit code; null after SIGKILL. */
  async kill(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<number | null> {
    const { child } = this;
    this.child = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exit = once(child, 'exit');
    child.kill(signal);
    child.kill('SIGCONT');
    await exit;
    return child.exitCode;
  }

  /** Waits until the process has ended by itself. @returns the signal that ended it. */
  async untilEnded(): Promise<NodeJS.Signals | null> {
    const { child } = this;
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return child?.signalCode ?? null;
  }

  /** Kill -9 and start again on the same ports with the same ledger. */
  async restart(): Promise<void> {
    await this.kill('SIGKILL');
    await this.start();
  }

  /** Freezes (SIGSTOP) and thaws (SIGCONT) the process: connections are taken, nothing is answered. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  /** Ends the process and removes its own ledger. Twice: nothing. */
  async stop(): Promise<void> {
    await this.kill('SIGTERM');
    if (this.folder !== null) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The built simulator: `npm test` builds first. `PAYMENTS_DIST_DIR` names another build. */
export function simulatorEntry(): string {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const entry = resolve(process.env['PAYMENTS_DIST_DIR'] ?? join(root, 'dist'), 'src/main-simulator.js');
  if (!existsSync(entry)) throw new Error('The simulator is not built. Run npm run build first.');
  return entry;
}

function portOf(url: string): string {
  return url === '' ? '0' : new URL(url).port;
}
