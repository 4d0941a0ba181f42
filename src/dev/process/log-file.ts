import {
  copyFileSync,
  closeSync,
  existsSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';

/** A process that writes more in one run keeps the last two files of this size. */
const LARGEST_BYTES = 50_000_000;
const TAIL_BYTES = 4_000;
const MOST_READ_BYTES = 1_000_000;

/** One log per process and run; the run before stays as `<name>.log.1`. */
export class LogFile {
  readonly path: string;

  constructor(folder: string, name: string) {
    this.path = join(folder, `${name}.log`);
  }

  /** Begins a new file for this run of the stack. */
  rotate(): void {
    if (existsSync(this.path)) renameSync(this.path, `${this.path}.1`);
  }

  /** A descriptor to append to; the caller closes it. The child writes to the file itself, so its
   * output survives the end of this process. */
  open(): number {
    return openSync(this.path, 'a', 0o600);
  }

  size(): number {
    return existsSync(this.path) ? statSync(this.path).size : 0;
  }

  /** Cuts a file that has grown too large; safe while the child appends. */
  bound(): void {
    if (this.size() <= LARGEST_BYTES) return;
    copyFileSync(this.path, `${this.path}.1`);
    truncateSync(this.path, 0);
  }

  /** What was written since a position in bytes, at most 1 MB. */
  since(position: number): string {
    const length = Math.min(Math.max(this.size() - position, 0), MOST_READ_BYTES);
    if (length === 0) return '';
    const buffer = Buffer.alloc(length);
    const descriptor = openSync(this.path, 'r');
    try {
      return buffer.toString('utf8', 0, readSync(descriptor, buffer, 0, length, position));
    } finally {
      closeSync(descriptor);
    }
  }

  /** The newest part, at most 1 MB. */
  recent(): string {
    return this.since(Math.max(this.size() - MOST_READ_BYTES, 0));
  }

  /** The last lines, for a message about a process that did not start. */
  tail(lines: number, from = 0): string {
    const text = this.since(Math.max(from, this.size() - TAIL_BYTES));
    return text.trimEnd().split('\n').slice(-lines).join('\n');
  }
}
