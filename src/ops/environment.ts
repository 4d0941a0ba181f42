import { withSecretFiles } from '../config/secret-files.js';
import { readLocalStack } from './local-stack.js';
import { CommandFailure, type Terminal } from './terminal.js';

/** A database under any role, also by a file. */
const NAMES_A_DATABASE = /^PAYMENTS_(?:[A-Z]+_)?DATABASE_URL(?:_FILE)?$/;

/**
 * The settings of commands on the service: the environment, or those of the local stack when it
 * names no database under any role. Who names one means that one, not whatever runs on this machine.
 * @throws CommandFailure when there is neither.
 */
export function serviceEnvironment(terminal: Terminal): NodeJS.ProcessEnv {
  if (Object.keys(terminal.env).some((name) => NAMES_A_DATABASE.test(name))) return terminal.env;
  const stack = readLocalStack(terminal);
  return stack === null ? terminal.env : { ...terminal.env, ...stack.environment };
}

/** Whose log-in a command needs: the worker's, the owner's, and so on. Each has a variable of its own. */
export type DatabaseVariable =
  | 'PAYMENTS_DATABASE_URL'
  | 'PAYMENTS_OWNER_DATABASE_URL'
  | 'PAYMENTS_READ_DATABASE_URL'
  | 'PAYMENTS_ADMIN_DATABASE_URL'
  | 'PAYMENTS_AUDITOR_DATABASE_URL';

/**
 * The database of commands that need nothing else.
 * @throws CommandFailure when the variable is missing or no Postgres URL. Never tells a value.
 */
export function databaseUrl(
  terminal: Terminal,
  variable: DatabaseVariable = 'PAYMENTS_DATABASE_URL',
): string {
  return databaseUrlIn(withSecretFiles(serviceEnvironment(terminal)), variable);
}

/** The same from settings that were read already. @throws as `databaseUrl`. */
export function databaseUrlIn(env: NodeJS.ProcessEnv, variable: DatabaseVariable): string {
  const url = env[variable];
  if (url !== undefined && /^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new CommandFailure(
    2,
    `${variable} is missing or no URL of the form postgres://user@host:port/database.`,
  );
}

/** SQLSTATE classes and system codes that mean: nobody answered, or not as this user. */
const NOT_REACHED = /^(08|28|3D|53|57P)/;

/** True when Postgres could not be asked at all; false when it answered with an error. */
export function isUnreachable(error: unknown): boolean {
  const { code, cause, name } = (error ?? {}) as { code?: unknown; cause?: unknown; name?: unknown };
  if (name === 'StorageUnavailable') return true;
  if (typeof code === 'string') return /^E[A-Z]+$/.test(code) || NOT_REACHED.test(code);
  return cause === undefined ? /timeout|terminated/i.test(String(error)) : isUnreachable(cause);
}
