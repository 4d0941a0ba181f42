import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ProcessGroup } from '../../../../bench/sampling/process-group.js';

/** The clock of /proc has ticks of 10 ms. */
const TICK_MS = 10;
const WORK_MS = 100;

const WORK = `const end = ${WORK_MS} * 1000; while (process.cpuUsage().user + process.cpuUsage().system < end);`;
const STAY = `process.stdout.write('done'); setInterval(() => undefined, 1000);`;

/** A process that uses at least 100 ms of CPU and then stays. */
async function worked(program = WORK + STAY): Promise<ChildProcess & { pid: number }> {
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child as typeof child & { pid: number };
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

describe.runIf(process.platform === 'linux')('a group of processes', { timeout: 60_000 }, () => {
  it('counts the CPU time of its processes', async () => {
    const [a, b] = [await worked(), await worked()];
    const group = new ProcessGroup(() => [a.pid, b.pid], 'with children');
    expect(group.cpuMs()).toBeGreaterThanOrEqual(2 * (WORK_MS - TICK_MS));
  });

  it('keeps the time of a process that was killed and adds that of the next', async () => {
    let pids: number[] = [];
    const group = new ProcessGroup(() => pids, 'with children');
    const first = await worked();
    pids = [first.pid];
    const before = group.cpuMs();
    await kill(first);
    expect(group.cpuMs()).toBe(before);
    const second = await worked();
    pids = [second.pid];
    expect(group.cpuMs()).toBeGreaterThanOrEqual(before + WORK_MS - TICK_MS);
  });

  it('counts what its processes started, living or ended, unless it stands alone', async () => {
    const inner = JSON.stringify(WORK);
    const parent = await worked(
      `const { spawnSync } = require('node:child_process'); spawnSync(process.execPath, ['-e', ${inner}]);${STAY}`,
    );
    const whole = new ProcessGroup(() => [parent.pid], 'with children');
    const alone = new ProcessGroup(() => [parent.pid], 'alone');
    expect(whole.cpuMs() - alone.cpuMs()).toBeGreaterThanOrEqual(WORK_MS - TICK_MS);
  });

  it('tells memory by PSS, and a peak that is not below it', async () => {
    const child = await worked();
    const group = new ProcessGroup(() => [child.pid], 'with children');
    const memory = group.memory(true);
    expect(memory?.kind).toBe('PSS');
    expect(memory?.bytes).toBeGreaterThan(1_000_000);
    expect(group.peakRss()).toBeGreaterThan(memory?.bytes ?? Infinity);
  });

  it('tells RSS when PSS was not asked for, and nothing when nobody lives', () => {
    expect(new ProcessGroup(() => [process.pid], 'alone').memory(false)?.kind).toBe('RSS');
    expect(new ProcessGroup(() => [], 'alone').memory(true)).toBeNull();
  });
});
