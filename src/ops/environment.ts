import { readLocalStack } from './local-stack.js';
import { CommandFailure, type Terminal } from './terminal.js';

/**
 * The settings of commands on the service: the environment, or those of the local stack when it
 * names no database.
 * @throws CommandFailure when there is neither.
 */
export function serviceEnvironment(terminal: Terminal): NodeJS.ProcessEnv {
  if (terminal.env['PAYMENTS_DATABASE_URL'] !== undefined) return terminal.env;
  const stack = readLocalStack(terminal);
  return stack === null ? terminal.env : { ...terminal.env, ...stack.environment };
}

/**
 * The database of commands that need nothing else.
 * @throws CommandFailure when PAYMENTS_DATABASE_URL is missing or no Postgres URL.
 */
export function databaseUrl(terminal: Terminal): string {
  const url = serviceEnvironment(terminal)['PAYMENTS_DATABASE_URL'];
  if (url !== undefined && /^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new CommandFailure(
    2,
    'PAYMENTS_DATABASE_URL is missing or no URL of the form postgres://user@host:port/database.',
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
