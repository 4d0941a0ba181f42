// Finds and ends the processes that a test run left behind. A run marks its environment with a variable
// of its own; every descendant inherits it, also one that left the process group. Works where /proc
// exists; elsewhere the caller has only the process group to end.
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 50;

function readOrNull(file) {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    // Ended since the folder was listed, or not ours to read.
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(error.code)) return null;
    throw error;
  }
}

/**
 * Running processes whose environment holds `name=value`. A zombie has no environment and is not listed.
 * @returns {{ pid: number, command: string }[]} pid and command line, at most 120 characters of it
 */
export function markedProcesses(name, value) {
  if (!fs.existsSync('/proc/self/environ')) return [];
  const mark = Buffer.from(`${name}=${value}`);
  const found = [];
  for (const entry of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    if (!readOrNull(`/proc/${entry}/environ`)?.includes(mark)) continue;
    const words = readOrNull(`/proc/${entry}/cmdline`)?.toString().split('\0').join(' ').trim() ?? '';
    found.push({ pid: Number(entry), command: words.slice(0, 120) });
  }
  return found;
}

/** Waits until no process is marked, at most `limitMs`. @returns those that still run then */
export async function waitForEnd(name, value, limitMs) {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const running = markedProcesses(name, value);
    if (running.length === 0 || performance.now() > deadline) return running;
    await sleep(POLL_MS);
  }
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** SIGTERM, then after `graceMs` SIGKILL for each marked process; resolves when all have ended. */
export async function endMarked(name, value, graceMs) {
  for (const { pid } of markedProcesses(name, value)) {
    signal(pid, 'SIGTERM');
    signal(pid, 'SIGCONT'); // A frozen process takes no signal but SIGKILL until it is thawed.
  }
  for (const { pid } of await waitForEnd(name, value, graceMs)) signal(pid, 'SIGKILL');
  const left = await waitForEnd(name, value, graceMs);
  if (left.length > 0)
    throw new Error(`Processes survived SIGKILL: ${left.map(({ pid }) => pid).join(', ')}.`);
}
