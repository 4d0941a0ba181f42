import { once } from 'node:events';
import { createServer } from 'node:net';
import { readdirSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../../src/dev/pacing.js';
import { identify, isAlive } from '../../../src/dev/process/process-identity.js';
import {
  SupervisedProcess,
  type ProcessEvent,
  type ProcessSpec,
} from '../../../src/dev/process/supervised-process.js';
import { livingChildren, openStackFolder } from '../../../src/dev/stack-folder.js';
import { temporaryFolder } from './temporary-folder.js';

const WAIT = AbortSignal.timeout(20_000);
const SERVES = `console.log('ready'); setInterval(() => {}, 1000);`;

function spec(script: string, changes: Partial<ProcessSpec> = {}): ProcessSpec {
  return {
    name: 'sample',
    command: process.execPath,
    args: ['-e', script],
    env: process.env,
    cwd: '/',
    ready: (output, signal) => until(() => output.text().includes('ready'), signal),
    readyWithinMs: 20_000,
    stopSignal: 'SIGTERM',
    stopWithinMs: 20_000,
    ...changes,
  };
}

function supervise(own: ProcessSpec, restartDelaysMs: readonly number[] = []) {
  const folder = openStackFolder(temporaryFolder());
  const events: ProcessEvent[] = [];
  const sample = new SupervisedProcess(own, {
    folder,
    restartDelaysMs,
    onEvent: (event) => events.push(event),
  });
  onTestFinished(() => sample.kill());
  return { sample, folder, events, kinds: () => events.map((event) => event.kind) };
}

function pidOf(sample: SupervisedProcess): number {
  if (sample.pid === null) throw new Error('The sample does not run.');
  return sample.pid;
}

describe('a process of the stack', () => {
  it('runs, is on record and writes its own log once start resolves', async () => {
    const { sample, folder } = supervise(spec(SERVES));
    await sample.start(WAIT);
    expect(livingChildren(folder)).toEqual([{ name: 'sample', identity: identify(pidOf(sample)) }]);
    expect(sample.log.tail(1)).toBe('ready');
  });

  it('is not started twice', async () => {
    const { sample } = supervise(spec(SERVES));
    await sample.start(WAIT);
    const first = pidOf(sample);
    await sample.start(WAIT);
    expect(pidOf(sample)).toBe(first);
  });

  it('that ends while it starts fails with its exit and its last lines, and is not restarted', async () => {
    const { sample, folder, events } = supervise(
      spec(`console.error('no such table'); process.exit(7);`),
      [1],
    );
    await expect(sample.start(WAIT)).rejects.toThrow(/exit code 7.*\nno such table/s);
    expect(events).toEqual([]);
    expect(readdirSync(folder.pids)).toEqual([]);
  });

  it('that cannot be run fails with the reason', async () => {
    const { sample } = supervise(spec('', { command: '/nowhere/program' }));
    await expect(sample.start(WAIT)).rejects.toThrow('ENOENT');
  });

  it('that does not get ready in time is killed', async () => {
    const { sample, folder } = supervise(spec(`setInterval(() => {}, 1000);`, { readyWithinMs: 300 }));
    await expect(sample.start(WAIT)).rejects.toThrow('was not ready within 300 ms');
    expect(sample.pid).toBeNull();
    expect(readdirSync(folder.pids)).toEqual([]);
  });

  it('is killed when its start is given up, and the reason is passed on', async () => {
    const ending = new AbortController();
    const reason = new Error('another step failed');
    const { sample } = supervise(
      spec(`console.log('up'); setInterval(() => {}, 1000);`, {
        ready: async (output, signal) => {
          await until(() => output.text().includes('up'), signal);
          ending.abort(reason);
          await until(() => false, signal);
        },
      }),
    );
    await expect(sample.start(ending.signal)).rejects.toBe(reason);
    expect(sample.pid).toBeNull();
  });

  it('stops on its signal and is off the record', async () => {
    const { sample, folder, events } = supervise(spec(SERVES), [1]);
    await sample.start(WAIT);
    expect(await sample.stop()).toBe('stopped');
    expect(await sample.stop()).toBe('down');
    expect(livingChildren(folder)).toEqual([]);
    expect(events).toEqual([]);
  });

  it('that does not stop within its limit is killed', async () => {
    const { sample } = supervise(spec(`process.on('SIGTERM', () => {}); ${SERVES}`, { stopWithinMs: 200 }));
    await sample.start(WAIT);
    expect(await sample.stop()).toBe('killed');
    expect(sample.pid).toBeNull();
  });

  it('takes its own children along when it is killed', async () => {
    const script = `const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
      console.log('ready ' + child.pid); setInterval(() => {}, 1000);`;
    const { sample } = supervise(
      spec(script, { ready: (o, s) => until(() => /ready \d+\n/.test(o.text()), s) }),
    );
    await sample.start(WAIT);
    const grandchild = identify(Number(/ready (\d+)/.exec(sample.log.since(0))?.[1]));
    if (grandchild === null) throw new Error('The grandchild does not run.');
    await sample.kill();
    await until(() => !isAlive(grandchild), WAIT);
  });

  it('is restarted when it ends by itself, after its preparation', async () => {
    let prepared = 0;
    const { sample, events, kinds } = supervise(spec(SERVES, { prepare: async () => void prepared++ }), [1]);
    await sample.start(WAIT);
    const first = pidOf(sample);
    process.kill(first, 'SIGKILL');
    await until(() => kinds().includes('restarted'), WAIT);
    expect(pidOf(sample)).not.toBe(first);
    expect(events[0]).toMatchObject({ kind: 'ended', name: 'sample', how: 'SIGKILL' });
    expect(prepared).toBe(2);
  });

  it('stays down, with a word why, after its last restart failed', async () => {
    let starts = 0;
    const { sample, events, kinds } = supervise(
      spec(SERVES, {
        prepare: async () => {
          if (starts++ > 0) throw new Error('the port is taken');
        },
      }),
      [1, 1],
    );
    await sample.start(WAIT);
    process.kill(pidOf(sample), 'SIGKILL');
    await until(() => kinds().includes('given-up'), WAIT);
    expect(starts).toBe(3);
    expect(events.at(-1)).toMatchObject({ kind: 'given-up', why: 'the port is taken' });
    expect(sample.pid).toBeNull();
  });

  it('that was killed on purpose stays down until it is started again', async () => {
    const { sample, events } = supervise(spec(SERVES), [1]);
    await sample.start(WAIT);
    await sample.kill();
    expect(sample.pid).toBeNull();
    await sample.start(WAIT);
    expect(sample.pid).not.toBeNull();
    expect(events).toEqual([]);
  });

  it('that waits for its restart can be stopped and then stays down', async () => {
    const { sample, kinds } = supervise(spec(SERVES), [600_000]);
    await sample.start(WAIT);
    process.kill(pidOf(sample), 'SIGKILL');
    await until(() => kinds().includes('ended'), WAIT);
    expect(await sample.stop()).toBe('down');
    expect(kinds()).toEqual(['ended']);
  });

  it('keeps the log of the run before when a new run rotates it', async () => {
    const { sample, folder } = supervise(spec(SERVES));
    await sample.start(WAIT);
    await sample.stop();
    sample.log.rotate();
    await sample.start(WAIT);
    expect(readdirSync(folder.logs).sort()).toEqual(['sample.log', 'sample.log.1']);
  });
});

describe('identity of a process', () => {
  it('ends with the process and is not inherited by a stranger with its number', async () => {
    const { sample } = supervise(spec(SERVES));
    await sample.start(WAIT);
    const identity = identify(pidOf(sample));
    if (identity === null) throw new Error('A running process has an identity.');
    expect(isAlive(identity)).toBe(true);
    expect(isAlive({ ...identity, startedAt: `${identity.startedAt}0` })).toBe(false);
    await sample.kill();
    expect(isAlive(identity)).toBe(false);
  });
});

describe('a process that another program freezes', () => {
  it('answers again after the thaw', async () => {
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    onTestFinished(() => void listener.close());
    const { port } = listener.address() as { port: number };
    const script = `process.on('SIGUSR2', () => require('node:net').connect(${port}, '127.0.0.1')); ${SERVES}`;
    const { sample } = supervise(spec(script));
    await sample.start(WAIT);
    sample.signal('SIGSTOP');
    process.kill(pidOf(sample), 'SIGUSR2');
    sample.signal('SIGCONT');
    await once(listener, 'connection', { signal: WAIT });
    await sample.stop();
    expect(() => sample.signal('SIGSTOP')).toThrow('does not run');
  });
});
