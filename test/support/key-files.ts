import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KEY_PURPOSES, type KeyPurpose, type KeySet } from '../../src/config/key-file.js';
import { newKeySet } from './ciphers.js';
import { payments, type Ran } from './command-line.js';
import type { TestDatabase } from './database.js';

export type KeySets = Record<KeyPurpose, KeySet>;

/** The key file of one host, in a folder of its own. */
export class HostKeyFile {
  private readonly folder = mkdtempSync(join(tmpdir(), 'payments-host-keys-'));
  readonly path = join(this.folder, 'keys.json');
  private readonly sets: KeySets;

  /** With one new key for each purpose, or with the keys of another host. */
  constructor(from: string | HostKeyFile) {
    this.sets =
      typeof from === 'string'
        ? (Object.fromEntries(KEY_PURPOSES.map((name) => [name, newKeySet(from)])) as KeySets)
        : { ...from.sets };
    this.place();
  }

  /** Changes the sets of these purposes as an operator does: the whole file at once, under the old one's name. */
  change(change: (set: KeySet) => KeySet, ...purposes: readonly KeyPurpose[]): void {
    for (const purpose of purposes) this.sets[purpose] = change(this.sets[purpose]);
    this.place();
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private place(): void {
    writeFileSync(`${this.path}.new`, JSON.stringify({ development: true, ...this.sets }), { mode: 0o600 });
    renameSync(`${this.path}.new`, this.path);
  }
}

/** Another key joins the set and becomes the active one. */
export const activate =
  (next: KeySet) =>
  ({ keys }: KeySet): KeySet => ({ active: next.active, keys: { ...keys, ...next.keys } });

/** What a set is without one of its keys. */
export const without =
  (gone: string) =>
  ({ active, keys }: KeySet): KeySet => ({
    active,
    keys: Object.fromEntries(Object.entries(keys).filter(([id]) => id !== gone)),
  });

/** `payments encryption …` on the host of this key file. */
export function encryptionCommand(
  db: TestDatabase,
  file: HostKeyFile,
  ...args: readonly string[]
): Promise<Ran> {
  return payments(['encryption', ...args, '--json'], {
    PAYMENTS_KEYS_FILE: file.path,
    PAYMENTS_DATABASE_URL: db.urlOf('payments_worker'),
    PAYMENTS_ADMIN_DATABASE_URL: db.urlOf('payments_admin'),
    PAYMENTS_READ_DATABASE_URL: db.urlOf('payments_read'),
  });
}
