import { closeSync, ftruncateSync, fstatSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * The simulator's append-only file of JSON lines.
 *
 * All lines of one turn of the event loop go to the operating system in one write. Answers wait for
 * it (`whenWritten`), so what was answered survives a kill of the process. It may not survive a
 * loss of power: there is no fsync, because the simulator judges crashes of processes.
 */
export class LedgerFile {
  private lines: string[] = [];
  private callbacks: (() => void)[] = [];

  private constructor(private readonly fd: number) {}

  /**
   * Opens or creates the file and reads what it holds, oldest first. A last line without its end,
   * left by a kill in the middle of a write, is cut off: nobody was answered for it.
   * @throws Error naming the line when any other line is not JSON.
   */
  static open(path: string): { readonly file: LedgerFile; readonly records: readonly unknown[] } {
    mkdirSync(dirname(path), { recursive: true });
    const fd = openSync(path, 'a+');
    const bytes = readFileSync(path);
    const end = bytes.lastIndexOf(0x0a) + 1;
    if (end < fstatSync(fd).size) ftruncateSync(fd, end);
    const records = bytes.toString('utf8', 0, end).split('\n').slice(0, -1).map(parseLine);
    return { file: new LedgerFile(fd), records };
  }

  /** Adds one line; it is written before the next turn of the event loop. */
  append(record: unknown): void {
    this.lines.push(JSON.stringify(record));
    if (this.lines.length === 1) setImmediate(() => this.flush());
  }

  /** Calls back once everything appended so far is with the operating system: at once if it is. */
  whenWritten(callback: () => void): void {
    if (this.lines.length === 0) callback();
    else this.callbacks.push(callback);
  }

  /** Writes what waits, then closes. Twice: throws, the file is gone. */
  close(): void {
    this.flush();
    closeSync(this.fd);
  }

  private flush(): void {
    if (this.lines.length === 0) return;
    const bytes = Buffer.from(`${this.lines.join('\n')}\n`);
    const callbacks = this.callbacks;
    this.lines = [];
    this.callbacks = [];
    // A failed write must end the process: the memory would know charges that the file does not.
    for (let at = 0; at < bytes.length;) at += writeSync(this.fd, bytes, at);
    for (const written of callbacks) written();
  }
}

function parseLine(line: string, index: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(
      `Line ${index + 1} of the simulator's ledger is not JSON; move the file away to start anew.`,
    );
  }
}
