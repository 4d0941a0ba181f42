import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stopOrphans } from '../../../src/dev/process/orphans.js';
import { identify } from '../../../src/dev/process/process-identity.js';
import { openStackFolder, recordChild, writePrivately } from '../../../src/dev/stack-folder.js';
import { temporaryFolder } from './temporary-folder.js';

async function sample(script: string): Promise<{ process: ChildProcess; pid: number }> {
  const child = spawn(process.execPath, ['-e', `${script}; console.log('up'); setInterval(() => {}, 1000)`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return { process: child, pid: child.pid ?? 0 };
}

describe('what a killed run left behind', () => {
  it('is asked to end: servers with their own signal, after their clients', async () => {
    const folder = openStackFolder(temporaryFolder());
    const worker = await sample('');
    const postgres = await sample(`process.on('SIGINT', () => process.exit(4))`);
    recordChild(folder, 'worker', worker.pid);
    recordChild(folder, 'postgres', postgres.pid);
    const lines: string[] = [];
    expect((await stopOrphans(folder, (line) => lines.push(line))).sort()).toEqual(['postgres', 'worker']);
    expect(worker.process.signalCode).toBe('SIGTERM');
    expect(postgres.process.exitCode).toBe(4);
    expect(lines).toEqual(['stopping worker of an earlier run', 'stopping postgres of an earlier run']);
    expect(readdirSync(folder.pids)).toEqual([]);
  });

  it('hears the request although it was frozen', async () => {
    const folder = openStackFolder(temporaryFolder());
    const worker = await sample('');
    worker.process.kill('SIGSTOP');
    recordChild(folder, 'worker', worker.pid);
    expect(await stopOrphans(folder, () => undefined)).toEqual(['worker']);
  });

  it('does not include a stranger who has got the number of a child', async () => {
    const folder = openStackFolder(temporaryFolder());
    const stranger = await sample('');
    writePrivately(join(folder.pids, 'worker.json'), { pid: stranger.pid, startedAt: 'another start' });
    expect(await stopOrphans(folder, () => undefined)).toEqual([]);
    expect(identify(stranger.pid)).not.toBeNull();
  });

  it('is nothing after a clean stop', async () => {
    expect(await stopOrphans(openStackFolder(temporaryFolder()), () => undefined)).toEqual([]);
  });
});
