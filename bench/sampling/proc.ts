import { readFileSync } from 'node:fs';

/**
 * What Linux tells of processes below /proc. Every reader answers null where there is no such file:
 * another system, a process that has ended. The bench then prints a dash and never a guess.
 */

/** Milliseconds of one tick of /proc; every Linux that Node runs on has 100 ticks a second. */
const TICK_MS = 10;

export interface ProcessTimes {
  /** Kernel's start time: with the number it names one process for ever. */
  readonly startTicks: string;
  readonly parentPid: number;
  /** User and system time of the process itself so far, ms. */
  readonly ownMs: number;
  /** The same of children that have ended and were waited for, ms. */
  readonly reapedMs: number;
}

export interface MachineTimes {
  /** Time that cores were busy since the boot, summed over cores, ms. */
  readonly busyMs: number;
  /** Time that the host of a virtual machine gave to others, ms. */
  readonly stolenMs: number;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null; // Not Linux, ended meanwhile, or another user's: the caller shows a dash.
  }
}

export function processTimes(pid: number): ProcessTimes | null {
  const text = read(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name in parentheses may hold spaces: count from its end.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ms = (index: number): number => Number(fields[index]) * TICK_MS;
  return {
    parentPid: Number(fields[1]),
    startTicks: fields[19] ?? '',
    ownMs: ms(11) + ms(12),
    reapedMs: ms(13) + ms(14),
  };
}

/** Living children, by the kernel's own list; empty where it keeps none. */
export function childrenOf(pid: number): readonly number[] {
  const text = read(`/proc/${pid}/task/${pid}/children`) ?? '';
  return text.split(' ').filter(Boolean).map(Number);
}

export function machineTimes(): MachineTimes | null {
  const line = read('/proc/stat')?.split('\n')[0];
  if (line === undefined) return null;
  const [, user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, steal = 0] = line
    .split(/\s+/)
    .map(Number);
  return {
    busyMs: (user + nice + system + interrupts + softInterrupts) * TICK_MS,
    stolenMs: steal * TICK_MS,
  };
}

/** The load average of the last minute, or null. */
export function loadAverage(): number | null {
  const text = read('/proc/loadavg');
  return text === null ? null : Number(text.split(' ')[0]);
}

/** One line `Name:  123 kB` of a file of /proc, in bytes. */
function kilobytes(text: string | null, name: string): number | null {
  const match = text === null ? null : new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text);
  return match ? Number(match[1]) * 1024 : null;
}

export interface ProcessMemory {
  /** Resident bytes now, shared pages counted whole. */
  readonly rss: number;
  /** Most resident bytes since the process started. */
  readonly peakRss: number;
  /** Resident bytes with each shared page divided by its users; null when it may not be read. */
  readonly pss: number | null;
}

/** @param withPss reading it walks the page tables: never during a measured second. */
export function processMemory(pid: number, withPss: boolean): ProcessMemory | null {
  const status = read(`/proc/${pid}/status`);
  const rss = kilobytes(status, 'VmRSS');
  if (rss === null) return null;
  const pss = withPss ? kilobytes(read(`/proc/${pid}/smaps_rollup`), 'Pss') : null;
  return { rss, peakRss: kilobytes(status, 'VmHWM') ?? rss, pss };
}
