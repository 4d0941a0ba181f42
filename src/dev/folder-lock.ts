import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { identify, isAlive, ProcessIdentity } from './process/process-identity.js';
import { StackError, systemCode } from './stack-error.js';

const TRIES = 20;

function holderOf(text: string): ProcessIdentity | null {
  try {
    return ProcessIdentity.parse(JSON.parse(text));
  } catch {
    return null; // Not written by us: nobody holds it.
  }
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Links `draft` to `file`: atomic, and the content is complete the moment the name exists. */
function linked(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Moves a dead holder's file away; a living one that slipped in between is put back. */
function removeStale(file: string, seen: string, aside: string): void {
  try {
    renameSync(file, aside);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return; // Another start was quicker.
    throw error;
  }
  if (readFileSync(aside, 'utf8') !== seen) linked(aside, file);
  rmSync(aside, { force: true });
}

/**
 * Makes this process the only one that runs a stack from a folder. The lock of a process that ended
 * in any way, a kill included, does not count.
 * @returns a function that gives the lock back.
 * @throws StackError naming the process that holds it.
 */
export function lockFolder(file: string): () => void {
  const me = identify(process.pid);
  if (me === null) throw new Error('This process does not find itself.');
  const draft = `${file}.${process.pid}.draft`;
  writeFileSync(draft, JSON.stringify(me), { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (linked(draft, file)) return () => rmSync(file, { force: true });
      const seen = readIfThere(file);
      if (seen === null) continue;
      const holder = holderOf(seen);
      if (holder && isAlive(holder)) {
        throw new StackError(
          `A stack already runs from this folder (process ${holder.pid}). Stop it with Ctrl-C there or ` +
            `\`kill ${holder.pid}\`; PAYMENTS_LOCAL_DIR and PAYMENTS_PORT_BASE start a second one beside it.`,
        );
      }
      removeStale(file, seen, `${file}.${process.pid}.stale`);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  throw new StackError(`${file} could not be taken: other starts keep taking it. Try again.`);
}
