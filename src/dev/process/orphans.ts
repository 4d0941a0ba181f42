import { isAlive } from './process-identity.js';
import { untilOrTimeout } from '../pacing.js';
import { StackError } from '../stack-error.js';
import { forgetChild, livingChildren, type RecordedChild, type StackFolder } from '../stack-folder.js';

const ASK_WITHIN_MS = 15_000;
const KILL_WITHIN_MS = 5_000;

async function stopOrphan(child: RecordedChild): Promise<void> {
  const { pid } = child.identity;
  const ended = () => !isAlive(child.identity);
  // SIGINT is Postgres' fast shutdown: it does not wait for the clients of the dead stack.
  send(pid, child.name === 'postgres' ? 'SIGINT' : 'SIGTERM');
  // A process that a test rig froze hears nothing until it is thawed.
  send(pid, 'SIGCONT');
  if (await untilOrTimeout(ended, ASK_WITHIN_MS)) return;
  send(-pid, 'SIGKILL');
  if (await untilOrTimeout(ended, KILL_WITHIN_MS)) return;
  throw new StackError(
    `${child.name} of an earlier run (process ${pid}) does not end. End it and start again.`,
  );
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Stops what an earlier run left behind when it was killed: clients first, their servers last.
 * Only processes on record in this folder are touched, each checked by number and start time.
 * @returns their names; empty when there was nothing.
 */
export async function stopOrphans(folder: StackFolder, report: (line: string) => void): Promise<string[]> {
  const orphans = livingChildren(folder);
  const isServer = (child: RecordedChild) => child.name === 'postgres' || child.name === 'temporal';
  for (const group of [orphans.filter((o) => !isServer(o)), orphans.filter(isServer)]) {
    if (group.length > 0) report(`stopping ${group.map((o) => o.name).join(', ')} of an earlier run`);
    await Promise.all(group.map(stopOrphan));
  }
  for (const orphan of orphans) forgetChild(folder, orphan.name);
  return orphans.map((orphan) => orphan.name);
}
