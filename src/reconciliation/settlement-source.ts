import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { readCamt053 } from './camt053.reader.js';
import { readCsvSettlement } from './csv-settlement.reader.js';
import type { SettlementFormat } from './settlement-file.store.js';
import { UnusableFile, type Reading } from './settlement-line.js';

/** Large enough for the disk, small enough to forget. */
const CHUNK_BYTES = 256 * 1_024;

export interface FileIdentity {
  readonly sha256: Buffer;
  readonly sizeBytes: number;
}

/**
 * The SHA-256 of a file's bytes. @throws UnusableFile when it cannot be read.
 * @param onBytes told how many bytes were read so far.
 */
export async function identifyFile(
  path: string,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<FileIdentity> {
  const digest = createHash('sha256');
  let sizeBytes = 0;
  for await (const chunk of chunksOf(path)) {
    digest.update(chunk);
    sizeBytes += chunk.length;
    onBytes(sizeBytes);
  }
  return { sha256: digest.digest(), sizeBytes };
}

/** The size in bytes, for a progress bar. @throws UnusableFile when there is no such file. */
export async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path);
    if (found.isFile()) return found.size;
  } catch (error) {
    throw new UnusableFile(`The file cannot be read (${codeOf(error)}).`, { cause: error });
  }
  throw new UnusableFile('The path is no file.');
}

/** Each chunk is the same memory: it is used up before the next one is read. */
async function* chunksOf(path: string): AsyncGenerator<Buffer> {
  const memory = Buffer.allocUnsafe(CHUNK_BYTES);
  try {
    const file = await open(path, 'r');
    try {
      for (;;) {
        const { bytesRead } = await file.read(memory, 0, CHUNK_BYTES);
        if (bytesRead === 0) return;
        yield memory.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    if (codeOf(error) === 'unknown') throw error;
    throw new UnusableFile(`The file cannot be read (${codeOf(error)}).`, { cause: error });
  }
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^E[A-Z]+$/.test(code) ? code : 'unknown';
}

/**
 * The rows of a file, in portions; memory is that of one portion.
 * @throws UnusableFile as the format's reader says, and when the bytes are not those of `identity`:
 * somebody wrote the file while it was read.
 */
export async function* readSettlement(
  path: string,
  format: SettlementFormat,
  identity: FileIdentity,
  onBytes: (bytes: number) => void = () => undefined,
): AsyncGenerator<readonly Reading[]> {
  const digest = createHash('sha256');
  async function* text(): AsyncGenerator<string> {
    const decoder = new TextDecoder('utf-8');
    let bytes = 0;
    for await (const chunk of chunksOf(path)) {
      digest.update(chunk);
      bytes += chunk.length;
      onBytes(bytes);
      yield decoder.decode(chunk, { stream: true });
    }
    const rest = decoder.decode();
    if (rest !== '') yield rest;
  }
  yield* format === 'csv' ? readCsvSettlement(text()) : readCamt053(text());
  if (!digest.digest().equals(identity.sha256)) {
    throw new UnusableFile('The file changed while it was read. Import it again when it is written.');
  }
}
