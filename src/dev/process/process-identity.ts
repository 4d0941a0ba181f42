import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { z } from 'zod';

/**
 * One process for ever. A number alone is no identity: the kernel gives it to a stranger once the
 * process has ended. The start time, counted since one boot, makes it unique.
 */
export const ProcessIdentity = z.object({
  pid: z.number().int().positive(),
  /** Opaque text of the kernel; equal texts mean the same start. */
  startedAt: z.string().min(1),
});
export type ProcessIdentity = z.infer<typeof ProcessIdentity>;

interface Stat {
  readonly name: string;
  readonly state: string;
  readonly parentPid: number;
  readonly startTicks: string;
}

/** State and start of a process from /proc; null when there is none. */
function linuxStat(pid: number): Stat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null; // It ended between our look and the read, or never was.
  }
  // The name in parentheses may hold spaces and parentheses itself: count from its end.
  const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { name, state: fields[0] ?? '', parentPid: Number(fields[1]), startTicks: fields[19] ?? '' };
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** @returns the identity of a living process, or null; a zombie counts as ended. */
export function identify(pid: number): ProcessIdentity | null {
  if (process.platform === 'linux') {
    const stat = linuxStat(pid);
    if (stat === null || stat.state === 'Z' || stat.state === 'X') return null;
    return { pid, startedAt: `${bootId()}/${stat.startTicks}` };
  }
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    const [, state = 'Z', startedAt = ''] = /^(\S+)\s+(.+)$/.exec(text) ?? [];
    return state.startsWith('Z') ? null : { pid, startedAt };
  } catch {
    return null; // ps exits 1 when there is no such process.
  }
}

/** True while exactly this process lives. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

/**
 * The processes whose end means that this one was given up: its parent, and the parent of that when
 * it is only the shell that a runner put in between (known on Linux alone).
 */
export function runners(): ProcessIdentity[] {
  const parent = identify(process.ppid);
  if (parent === null) return [];
  const stat = process.platform === 'linux' ? linuxStat(parent.pid) : null;
  const isShell = stat !== null && /^(sh|dash|bash|zsh)$/.test(stat.name);
  const runner = isShell ? identify(stat.parentPid) : null;
  return runner === null ? [parent] : [parent, runner];
}

/**
 * Processes that live in a folder: their working folder is this one. Linux only; elsewhere empty.
 * Every process of a Postgres server has its data folder as working folder.
 */
export function processesIn(folder: string): number[] {
  if (process.platform !== 'linux') return [];
  let real: string;
  try {
    real = realpathSync(folder);
  } catch {
    return []; // No folder, no process in it.
  }
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`) === real && identify(pid) !== null;
      } catch {
        return false; // It ended meanwhile, or belongs to somebody else: not ours.
      }
    });
}
