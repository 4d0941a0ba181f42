import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';

const keyId = z.string().regex(/^[a-z0-9-]{1,32}$/);
const keySet = z.object({
  /** The id of the key that new rows take. */
  active: keyId,
  /** Key id to 32 bytes in base64. Old ids stay until no row needs them. */
  keys: z.record(keyId, z.base64()),
});
const anchorSet = z.object({
  /** One key, or two while one is replaced: every one signs. */
  active: z.array(keyId).min(1).max(2),
  /** Key id to an Ed25519 seed, 32 bytes in base64. Old ids stay until the new key has signed. */
  keys: z.record(keyId, z.base64()),
});
const KeysFile = z.object({
  /** Marks keys that anybody may read; production mode refuses them. */
  development: z.boolean().default(false),
  /** Key-encryption keys: they wrap the data keys. Rows of releases before data keys name them directly. */
  encryption: keySet,
  digest: keySet,
  pepper: keySet,
  cursor: keySet,
  /** Signs anchors of the history. Workers need it; a host that runs none need not hold it. */
  anchor: anchorSet.optional(),
});

/** One purpose's keys. */
export interface KeySet {
  readonly active: string;
  readonly keys: Readonly<Record<string, string>>;
  /** Reads the file again if it was changed since; absent for keys that come from no file. */
  readonly refresh?: () => void;
}

export const KEY_PURPOSES = ['encryption', 'digest', 'pepper', 'cursor'] as const;
export type KeyPurpose = (typeof KEY_PURPOSES)[number];

/** All keys of a process. */
export interface KeysFile extends Readonly<Record<KeyPurpose, KeySet>> {
  readonly development: boolean;
  /** Absent on hosts that sign no anchors. */
  readonly anchor?: AnchorKeySet | undefined;
}

/** The keys that sign anchors: Ed25519 seeds by id. */
export interface AnchorKeySet {
  readonly active: readonly string[];
  readonly keys: Readonly<Record<string, string>>;
}

/**
 * Reads the key file: key-encryption keys, HMAC keys for digests of destinations, for API keys and for
 * list cursors.
 * @throws Error when the file is missing, malformed, holds a key that is not 32 bytes, or in production
 * mode is a development file, holds a key of one repeated byte, or holds a key for two purposes. Never
 * shows a key.
 */
export function readKeysFile(path: string, mode: 'development' | 'production'): KeysFile {
  const parsed = KeysFile.safeParse(jsonOf(path));
  if (!parsed.success) throw new Error('The key file does not have the expected form. See .env.example.');
  const file = parsed.data;
  for (const [name, set] of setsOf(file)) {
    if (![set.active].flat().every((id) => Object.hasOwn(set.keys, id))) {
      throw new Error(`The key file's ${name} set lacks its active key.`);
    }
    for (const [id, key] of Object.entries(set.keys)) {
      if (Buffer.from(key, 'base64').length !== 32) throw new Error(`Key ${id} of ${name} is not 32 bytes.`);
    }
  }
  if (mode === 'production') refuseWeakKeys(file);
  return file;
}

/** Every set that the file holds, by purpose. */
function setsOf(file: KeysFile): readonly (readonly [name: string, set: KeySet | AnchorKeySet])[] {
  const sets = KEY_PURPOSES.map((name) => [name, file[name]] as const);
  return file.anchor === undefined ? sets : [...sets, ['anchor', file.anchor]];
}

function jsonOf(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error('The file of PAYMENTS_KEYS_FILE cannot be read.', { cause: error });
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own words quote the file.
    throw new Error('The key file is not JSON. See .env.example.');
  }
}

/** Whoever copies an example instead of making keys has keys that everybody knows. */
function refuseWeakKeys(file: KeysFile): void {
  if (file.development) {
    throw new Error('The key file is marked as development; production needs keys of its own.');
  }
  const purposes = new Map<string, string>();
  for (const [name, set] of setsOf(file)) {
    for (const [id, base64] of Object.entries(set.keys)) {
      const bytes = Buffer.from(base64, 'base64');
      if (bytes.every((byte) => byte === bytes[0])) {
        throw new Error(`Key ${id} of ${name} is one repeated byte. Make one: openssl rand -base64 32.`);
      }
      const hex = bytes.toString('hex');
      const other = purposes.get(hex);
      if (other !== undefined && other !== name) {
        throw new Error(
          `Key ${id} of ${name} is also a key of ${other}. Each purpose needs keys of its own.`,
        );
      }
      purposes.set(hex, name);
    }
  }
}

/** A changed key file is noticed within this time (ms). */
export const KEY_FILE_POLL_MS = 2_000;

export interface KeyFileEvents {
  /** Other keys are in force now. */
  readonly changed: () => void;
  /** The file does not pass its checks; the keys that were in force stay. Told once for each new fault. */
  readonly refused: (error: unknown) => void;
}

/**
 * The key file of a running process. `keys` always shows what was last read and passed the checks, so
 * that whoever holds it, or one of its sets, follows a rotation without a restart. Polled and not
 * watched: a mounted secret is replaced by renaming folders, which file watchers miss.
 */
export class KeyFile {
  readonly keys: KeysFile;
  #current: KeysFile;
  #text: string;
  #fault: string | null = null;
  #seen: string;
  #events: KeyFileEvents | null = null;

  /** @throws Error as `readKeysFile`. */
  constructor(
    private readonly path: string,
    private readonly mode: 'development' | 'production',
  ) {
    // Before the file is read: one that changes in between is read once more, and none is missed.
    this.#seen = versionOf(path);
    this.#current = readKeysFile(path, mode);
    this.#text = JSON.stringify(this.#current);
    const current = (): KeysFile => this.#current;
    const refresh = (): void => this.#refresh();
    const live = (name: KeyPurpose): KeySet => ({
      get active() {
        return current()[name].active;
      },
      get keys() {
        return current()[name].keys;
      },
      refresh,
    });
    this.keys = {
      get development() {
        return current().development;
      },
      encryption: live('encryption'),
      digest: live('digest'),
      pepper: live('pepper'),
      cursor: live('cursor'),
      get anchor() {
        return current().anchor;
      },
    };
  }

  /** Looks for changes until the answered function is called. The timer keeps no process alive. */
  watch(events: KeyFileEvents): () => void {
    this.#events = events;
    const timer = setInterval(() => this.read(), KEY_FILE_POLL_MS);
    timer.unref();
    return () => {
      clearInterval(timer);
      this.#events = null;
    };
  }

  /** Reads the file now. Never throws: what does not pass the checks changes nothing. */
  read(): void {
    this.#seen = versionOf(this.path);
    try {
      const next = readKeysFile(this.path, this.mode);
      const text = JSON.stringify(next);
      this.#fault = null;
      if (text === this.#text) return;
      this.#current = next;
      this.#text = text;
      this.#events?.changed();
    } catch (error) {
      const fault = String(error);
      if (fault !== this.#fault) this.#events?.refused(error);
      this.#fault = fault;
    }
  }

  /** A row may name an unknown key again and again: a file that is still the same is not read for it. */
  #refresh(): void {
    if (versionOf(this.path) !== this.#seen) this.read();
  }
}

/** Differs between any two files that were put in place, whether by a rename or written over. Never throws. */
function versionOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return String((error as { code?: unknown }).code);
  }
}
