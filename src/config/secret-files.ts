import { readFileSync } from 'node:fs';

/**
 * Every variable whose value is a secret, or holds one. Each may be given as `<name>_FILE` instead: the
 * path of a file with the value. Never on the command line, which everybody on the host can read.
 */
export const SECRET_VARIABLES = [
  'PAYMENTS_DATABASE_URL',
  'PAYMENTS_RELAY_DATABASE_URL',
  'PAYMENTS_READ_DATABASE_URL',
  'PAYMENTS_ADMIN_DATABASE_URL',
  'PAYMENTS_AUDITOR_DATABASE_URL',
  'PAYMENTS_OWNER_DATABASE_URL',
  'PAYMENTS_SIMULATOR_API_KEY',
  'PAYMENTS_SIMULATOR_API_KEY_B',
  'PAYMENTS_SIMULATOR_API_KEY_C',
  'PAYMENTS_SIMULATOR_API_KEY_D',
  'PAYMENTS_SIMULATOR_API_KEY_T',
  'PAYMENTS_STRIPE_API_KEY',
  'PAYMENTS_WEBHOOK_SECRETS',
  'PAYMENTS_API_KEY',
] as const;

/** The largest file of secrets that is read, in bytes. */
const LARGEST = 65_536;

/**
 * The environment with the content of each secret's file in the place of its path; white space around it
 * is no part of a secret.
 * @throws Error naming the variable when both are given, or the file cannot be read, is empty or too
 * large. Shows neither the secret nor the path. Twice: the same, for what it answered names no files.
 */
export function withSecretFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const read: NodeJS.ProcessEnv = { ...env };
  for (const name of SECRET_VARIABLES) {
    const file = `${name}_FILE`;
    const path = env[file];
    if (path === undefined) continue;
    if (env[name] !== undefined) throw new Error(`${name} and ${file} exclude each other.`);
    read[name] = contentOf(file, path);
    delete read[file];
  }
  return read;
}

function contentOf(variable: string, path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    throw new Error(`The file of ${variable} cannot be read (${String(code)}).`);
  }
  const value = text.trim();
  if (value === '') throw new Error(`The file of ${variable} is empty.`);
  if (Buffer.byteLength(value) > LARGEST)
    throw new Error(`The file of ${variable} is too large for a secret.`);
  return value;
}
