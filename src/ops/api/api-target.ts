import { resolve } from 'node:path';
import { withSecretFiles } from '../../config/secret-files.js';
import { signTokenFor } from '../local-people.js';
import { readLocalStack } from '../local-stack.js';
import { CommandFailure, type Terminal } from '../terminal.js';

export interface ApiOptions {
  readonly apiUrl?: string;
  readonly apiKeyFile?: string;
}

/** Where to ask and with which credential. */
export interface ApiTarget {
  readonly url: string;
  readonly key: string;
}

/**
 * Whose credential of the local stack a command takes when none is given: a key, or a person, for
 * whom a fresh token is signed.
 */
export type LocalKey = 'client' | { readonly person: string };
/** Operators of the local stack are people, as everywhere. */
export const LOCAL_OPERATOR: LocalKey = Object.freeze({ person: 'operator-1' });

/**
 * The API to ask: options, else PAYMENTS_API_URL and PAYMENTS_API_KEY, else the local stack. A key never
 * stands among the arguments, which everybody on the host can read. One
 * of the local stack is never sent to another address.
 * @throws CommandFailure with exit code 2 when the address or the key is missing or unusable.
 */
export function apiTarget(terminal: Terminal, options: ApiOptions, localKey: LocalKey): ApiTarget {
  const url = options.apiUrl || terminal.env['PAYMENTS_API_URL'];
  const key = keyOf(terminal, options);
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
  if (key) return { url: stack.api_url, key };
  if (typeof localKey === 'string') return { url: stack.api_url, key: stack.api_keys[localKey] };
  return { url: stack.api_url, key: signTokenFor(terminal, stack, localKey.person) };
}

/** @throws CommandFailure when a file is named and cannot be read. */
function keyOf({ env, folder }: Terminal, { apiKeyFile }: ApiOptions): string | undefined {
  const named = apiKeyFile === undefined ? env : { PAYMENTS_API_KEY_FILE: resolve(folder, apiKeyFile) };
  try {
    return withSecretFiles(named)['PAYMENTS_API_KEY'];
  } catch (error) {
    throw new CommandFailure(2, (error as Error).message);
  }
}
