import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { CommandFailure, type Terminal } from '../terminal.js';

export interface ApiOptions {
  readonly apiUrl?: string;
  readonly apiKey?: string;
}

/** Where to ask and with which credential. */
export interface ApiTarget {
  readonly url: string;
  readonly key: string;
}

/** Whose key of the local stack a command takes when none is given. */
export type LocalKey = 'client' | 'operator';

const StackFile = z.object({
  state: z.string(),
  api_url: z.string(),
  api_keys: z.object({ client: z.string(), operator: z.string() }),
});

/** The checkout that this program belongs to: the nearest folder above with a package.json. */
function checkout(): string | null {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) return null;
    folder = parent;
  }
  return folder;
}

/** stack.json of the local stack: of PAYMENTS_LOCAL_DIR, else `.local` here, else in the checkout. */
function findStackFile(terminal: Terminal): string | null {
  const named = terminal.env['PAYMENTS_LOCAL_DIR'] || '.local';
  const starts = [terminal.folder, checkout()].filter((folder) => folder !== null);
  const files = starts.map((folder) => join(resolve(folder, named), 'stack.json'));
  return files.find((file) => existsSync(file)) ?? null;
}

function readLocalStack(terminal: Terminal): z.infer<typeof StackFile> | null {
  const file = findStackFile(terminal);
  if (file === null) return null;
  const parsed = StackFile.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!parsed.success)
    throw new CommandFailure(2, `${file} is not the file of a local stack. Run npm start.`);
  if (parsed.data.state !== 'running') {
    throw new CommandFailure(2, 'The local stack is stopped. Run npm start, or name an API with --api-url.');
  }
  return parsed.data;
}

/**
 * The API to ask: options, else PAYMENTS_API_URL and PAYMENTS_API_KEY, else the local stack. A key
 * of the local stack is never sent to another address.
 * @throws CommandFailure with exit code 2 when the address or the key is missing or unusable.
 */
export function apiTarget(terminal: Terminal, options: ApiOptions, localKey: LocalKey): ApiTarget {
  const url = options.apiUrl || terminal.env['PAYMENTS_API_URL'];
  const key = options.apiKey || terminal.env['PAYMENTS_API_KEY'];
  if (key && !/^[!-~]+$/.test(key)) {
    throw new CommandFailure(2, 'The API key holds characters that no key has.');
  }
  if (url) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw new CommandFailure(2, 'The address of the API is no URL of the form https://host:port.');
    }
    if (!key) throw new CommandFailure(2, 'The API key is missing. Put it into PAYMENTS_API_KEY.');
    return { url, key };
  }
  const stack = readLocalStack(terminal);
  if (stack === null) {
    throw new CommandFailure(
      2,
      'There is no API to ask. Start a local stack with npm start, or give --api-url and PAYMENTS_API_KEY.',
    );
  }
  return { url: stack.api_url, key: key || stack.api_keys[localKey] };
}
