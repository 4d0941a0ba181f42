import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/dev/pacing.js';
import { portsFrom, reservePortBlock } from '../../src/dev/ports.js';
import { identify, isAlive, type ProcessIdentity } from '../../src/dev/process/process-identity.js';
import { readStackFile, type StackFile } from '../../src/dev/stack-file.js';
import { projectRoot, readStackSettings } from '../../src/dev/stack-settings.js';
import { SimulatorControl } from '../support/simulator-control.js';
import { startStack, type TemporaryStack } from '../support/stack.js';

const SOON = () => AbortSignal.timeout(60_000);

interface Payment {
  readonly id: string;
  readonly state: string;
}

/** The headers as a plain object, so that they can be joined. */
type StackRequest = Omit<RequestInit, 'headers'> & { readonly headers?: Record<string, string> };

async function callApi(stack: StackFile, path: string, init: StackRequest = {}): Promise<Payment> {
  const headers = { authorization: `Bearer ${stack.api_keys.client}`, ...init.headers };
  const answer = await fetch(`${stack.api_url}${path}`, { ...init, headers });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`);
  return JSON.parse(text) as Payment;
}

let keys = 0;
/** Schedules a payment as the curl that `npm start` prints does. */
function schedule(stack: StackFile, inMs: number): Promise<Payment> {
  return callApi(stack, '/v1/payments', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': `local-stack-${process.pid}-${keys++}`,
    },
    body: JSON.stringify({
      amount: 1999,
      currency: 'EUR',
      destination: 'acct_example',
      execute_at: new Date(Date.now() + inMs).toISOString(),
    }),
  });
}

/** Local addresses on which a process listens, as the kernel writes them (Linux). */
function listeningAddresses(pid: number): string[] {
  const inodes = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      return []; // Closed between the list and the look.
    }
  });
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && inodes.includes(fields[9] ?? ''))
      .map((fields) => fields[1]?.split(':')[0] ?? ''),
  );
}

describe('a whole stack', () => {
  let stack: TemporaryStack;
  beforeAll(async () => {
    stack = await startStack();
  });
  afterAll(() => stack.stop());

  it('is up under every address of stack.json once the start resolves', async () => {
    const file = readStackFile(join(stack.folder, 'stack.json'));
    expect(file).toMatchObject({ state: 'running', api_url: stack.api_url, pids: stack.pids });
    expect(Object.keys(stack.pids).sort()).toEqual(['api', 'postgres', 'simulator', 'temporal', 'worker']);
    for (const url of [stack.health_url, stack.worker_health_url]) {
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    }
  });

  it('keeps every commit, and none of its processes is in the database as more than its role', async () => {
    const database = new pg.Client(stack.postgres_url);
    await database.connect();
    onTestFinished(() => database.end());
    expect((await database.query('SHOW fsync')).rows).toEqual([{ fsync: 'on' }]);
    const { rows } = await database.query<{ role: string }>(
      `SELECT DISTINCT usename AS role FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY 1`,
    );
    expect(rows.map(({ role }) => role)).toEqual([
      'payments_api',
      'payments_read',
      'payments_relay',
      'payments_worker',
    ]);
  });

  it.runIf(process.platform === 'linux')('listens on the loopback address and nowhere else', () => {
    for (const [name, pid] of Object.entries(stack.pids)) {
      const addresses = listeningAddresses(pid);
      // 0100007F is 127.0.0.1 as the kernel writes it.
      expect({ name, addresses: [...new Set(addresses)] }).toEqual({ name, addresses: ['0100007F'] });
    }
  });

  it('pays a payment that the API accepted, once, and the simulator saw it', async () => {
    const payment = await schedule(stack, 1_000);
    await until(
      async () => (await callApi(stack, `/v1/payments/${payment.id}`)).state === 'succeeded',
      SOON(),
    );
    const simulator = new SimulatorControl(() => ({
      controlUrl: stack.simulator_control_url,
      controlToken: stack.simulator_control_token,
    }));
    expect((await simulator.effects(payment.id)).count).toBe(1);
  });

  it('keeps a killed process down until it is restarted, and its log', async () => {
    await stack.kill('worker');
    expect(stack.pids['worker']).toBeUndefined();
    await expect(fetch(`${stack.worker_health_url}/readyz`)).rejects.toThrow();
    await stack.restart('worker');
    expect((await fetch(`${stack.worker_health_url}/readyz`)).status).toBe(200);
    expect(stack.events).toEqual([]);
    expect(stack.log('worker').length).toBeGreaterThan(0);
  });

  it('recovers its database after a kill without losing a payment', async () => {
    const payment = await schedule(stack, 3_600_000);
    await stack.kill('postgres');
    await stack.restart('postgres');
    await until(async () => {
      const answer = await fetch(`${stack.health_url}/readyz`);
      return answer.status === 200;
    }, SOON());
    expect(await callApi(stack, `/v1/payments/${payment.id}`)).toMatchObject({ state: 'scheduled' });
  });
});

/** `npm start` without npm: the program itself in a folder and a port block of its own. */
class StartedProgram {
  output = '';
  readonly ended: Promise<number | null>;
  readonly #child: ReturnType<typeof spawn>;

  constructor(place: Place, env: NodeJS.ProcessEnv = {}, args: readonly string[] = []) {
    this.#child = spawn(process.execPath, [join(projectRoot(), 'dist', 'src', 'main-dev.js'), ...args], {
      env: {
        ...process.env,
        TEMPORAL_ADDRESS: undefined,
        PAYMENTS_LOCAL_DIR: place.folder,
        PAYMENTS_PORT_BASE: String(place.base),
        ...env,
      },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (text: Buffer) => (this.output += text.toString()));
    }
    this.ended = new Promise((resolve) => this.#child.once('close', resolve));
    onTestFinished(() => void this.#child.kill('SIGKILL'));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Goes away as the reader of its output, like `head` in a pipe. */
  stopReading(): void {
    this.#child.stdout?.destroy();
  }

  /** Resolves with stack.json when the stack runs; throws what was printed when it ended instead. */
  async running(place: Place): Promise<StackFile> {
    let hasEnded = false;
    void this.ended.then(() => (hasEnded = true));
    await until(() => hasEnded || this.output.includes('next start takes seconds'), SOON());
    if (hasEnded) throw new Error(this.output);
    return stackOf(place);
  }
}

interface Place {
  readonly folder: string;
  readonly base: number;
}

function stackOf(place: Place): StackFile {
  const stack = readStackFile(join(place.folder, 'stack.json'));
  if (stack === null) throw new Error('There is no stack.json.');
  return stack;
}

function identities(stack: StackFile): ProcessIdentity[] {
  return Object.values(stack.pids).flatMap((pid) => identify(pid) ?? []);
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
}

/** A folder and ports for programs of one test; nothing that the test leaves running survives it. */
async function newPlace(): Promise<Place> {
  const ports = await reservePortBlock(readStackSettings(projectRoot()));
  const folder = mkdtempSync(join(tmpdir(), 'payments-start-'));
  chmodSync(folder, 0o711);
  onTestFinished(async () => {
    const left = existsSync(join(folder, 'stack.json')) ? identities(stackOf({ folder, base: 0 })) : [];
    killAll(left.map((each) => each.pid));
    await until(() => left.every((each) => !isAlive(each)), SOON());
    rmSync(folder, { recursive: true, force: true });
    await ports.release();
  });
  return { folder, base: ports.base };
}

describe('npm start', () => {
  it('ends with 0 after Ctrl-C, with every process gone, and keeps payments for the next start', async () => {
    const place = await newPlace();
    const first = new StartedProgram(place);
    const stack = await first.running(place);
    const processes = identities(stack);
    expect(processes).toHaveLength(5);
    const payment = await schedule(stack, 3_600_000);
    first.signal('SIGINT');
    expect(await first.ended).toBe(0);
    expect(processes.filter(isAlive)).toEqual([]);
    expect(stackOf(place)).toMatchObject({ state: 'stopped', pids: {}, api_keys: stack.api_keys });
    const order = [...first.output.matchAll(/^ {2}(\w+) stopped/gm)].map((match) => match[1]);
    expect(order).toEqual(['worker', 'api', 'simulator', 'temporal', 'postgres']);

    const second = new StartedProgram(place);
    const again = await second.running(place);
    expect(await callApi(again, `/v1/payments/${payment.id}`)).toMatchObject({ id: payment.id });
    second.signal('SIGTERM');
    expect(await second.ended).toBe(0);
  });

  it('stops everything when the reader of its output goes away while it starts', async () => {
    const place = await newPlace();
    const program = new StartedProgram(place);
    const pids = join(place.folder, 'pids');
    await until(() => existsSync(pids) && readdirSync(pids).length > 0, SOON());
    program.stopReading();
    expect(await program.ended).toBe(1);
    expect(readdirSync(pids)).toEqual([]);
  });

  it.each([
    [['--help'], 0],
    [['--port', '80'], 2],
  ])('with %j says what it does, starts nothing and ends with %i', async (args, code) => {
    const place = await newPlace();
    const program = new StartedProgram(place, {}, args);
    expect(await program.ended).toBe(code);
    expect(program.output).toContain('takes no');
    expect(existsSync(join(place.folder, 'stack.json'))).toBe(false);
  });

  it('recovers after a kill of the program and every process', async () => {
    const place = await newPlace();
    const first = new StartedProgram(place);
    const stack = await first.running(place);
    const payment = await schedule(stack, 3_600_000);
    first.signal('SIGKILL');
    killAll(Object.values(stack.pids));
    await first.ended;
    const second = new StartedProgram(place);
    const again = await second.running(place);
    expect(await callApi(again, `/v1/payments/${payment.id}`)).toMatchObject({ state: 'scheduled' });
  });

  it('stops the processes that survived the kill of the program before it starts its own', async () => {
    const place = await newPlace();
    const first = new StartedProgram(place);
    const orphans = identities(await first.running(place));
    first.signal('SIGKILL');
    await first.ended;
    expect(orphans.filter(isAlive)).toHaveLength(5);
    const second = new StartedProgram(place);
    await second.running(place);
    expect(orphans.filter(isAlive)).toEqual([]);
    expect(second.output).toContain('stopped of an earlier run: ');
  });

  it('refuses a second start from the same folder and leaves the first alone', async () => {
    const place = await newPlace();
    const first = new StartedProgram(place);
    const stack = await first.running(place);
    const second = new StartedProgram(place);
    expect(await second.ended).toBe(1);
    expect(second.output).toContain(
      `A stack already runs from this folder (process ${stack.supervisor_pid})`,
    );
    expect(stackOf(place)).toEqual(stack);
    expect(identities(stack).filter(isAlive)).toHaveLength(5);
  });

  it('lets one of two starts at the same moment run', async () => {
    const place = await newPlace();
    const both = [new StartedProgram(place), new StartedProgram(place)];
    const refused = await Promise.race(both.map(async (each) => ((await each.ended) === 1 ? each : null)));
    expect(refused?.output).toContain('A stack already runs from this folder');
    await both.find((each) => each !== refused)?.running(place);
  });

  it('restarts a process that ended by itself and writes its new number down', async () => {
    const place = await newPlace();
    const program = new StartedProgram(place);
    const stack = await program.running(place);
    const { api = 0 } = stack.pids;
    killAll([api]);
    await until(() => program.output.includes('api runs again'), SOON());
    expect(program.output).toContain('api ended by itself (SIGKILL)');
    const now = stackOf(place);
    expect(now.pids['api']).not.toBe(api);
    expect((await fetch(`${now.health_url}/readyz`)).status).toBe(200);
  });

  it('ends with 1 and one sentence when a port is taken, and starts nothing', async () => {
    const place = await newPlace();
    const { postgres } = portsFrom(readStackSettings(projectRoot()), place.base, { apis: 1, workers: 1 });
    const stranger = createServer().listen(postgres, '127.0.0.1');
    await once(stranger, 'listening');
    onTestFinished(() => void stranger.close());
    const program = new StartedProgram(place);
    expect(await program.ended).toBe(1);
    expect(program.output).toContain(`Port ${postgres} (Postgres) is in use by another program.`);
    expect(program.output).not.toMatch(/^ {4}at /m);
    expect(readdirSync(join(place.folder, 'pids'))).toEqual([]);
  });

  it('stops what it had started when a later part fails', async () => {
    const place = await newPlace();
    const program = new StartedProgram(place, { PAYMENTS_LOG_LEVEL: 'no such level' });
    expect(await program.ended).toBe(1);
    expect(program.output).toContain('PAYMENTS_LOG_LEVEL');
    expect(program.output).toContain('postgres stopped');
    expect(readdirSync(join(place.folder, 'pids'))).toEqual([]);
    expect(existsSync(join(place.folder, 'stack.json'))).toBe(false);
  });

  it('kills everything at a second Ctrl-C, and the next start recovers', async () => {
    const place = await newPlace();
    const program = new StartedProgram(place);
    const stack = await program.running(place);
    const processes = identities(stack);
    process.kill(stack.pids['worker'] ?? 0, 'SIGSTOP');
    // The first few count as one: npm hands on what the terminal has already sent.
    const presses = setInterval(() => program.signal('SIGINT'), 100);
    onTestFinished(() => clearInterval(presses));
    expect(await program.ended).toBe(130);
    expect(program.output).toContain('Killing everything');
    expect(processes.filter(isAlive)).toEqual([]);
    expect(stackOf(place)).toMatchObject({ state: 'stopped', pids: {} });
    await new StartedProgram(place).running(place);
  });

  it('that is interrupted while it starts leaves nothing behind and ends with 1', async () => {
    const place = await newPlace();
    const program = new StartedProgram(place);
    await until(() => existsSync(join(place.folder, 'pids', 'postgres.json')), SOON());
    program.signal('SIGINT');
    expect(await program.ended).toBe(1);
    expect(program.output).toContain('The start was interrupted.');
    expect(readdirSync(join(place.folder, 'pids'))).toEqual([]);
  });
});
