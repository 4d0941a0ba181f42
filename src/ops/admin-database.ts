import { withSecretFiles } from '../config/secret-files.js';
import { Database, type Sql } from '../persistence/database.js';
import { isUnreachable, serviceEnvironment } from './environment.js';
import { CommandFailure, type Terminal } from './terminal.js';

const SETTING = 'PAYMENTS_ADMIN_DATABASE_URL';

/**
 * The settings of commands that keep keys and limits: the environment when it names the administrator's
 * database, else those of the local stack.
 * @throws CommandFailure with exit code 2 when neither does.
 */
export function adminEnvironment(terminal: Terminal): NodeJS.ProcessEnv & { readonly [SETTING]: string } {
  const env = settingsOf(serviceEnvironment(terminal));
  const url = env[SETTING];
  if (url !== undefined && /^postgres(ql)?:\/\//.test(url) && URL.canParse(url))
    return { ...env, [SETTING]: url };
  throw new CommandFailure(
    2,
    `${SETTING} is missing or no URL of the form postgres://payments_admin@host:port/database.`,
  );
}

function settingsOf(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  try {
    return withSecretFiles(env);
  } catch (error) {
    throw new CommandFailure(2, error instanceof Error ? error.message : 'A file of secrets cannot be read.');
  }
}

/**
 * Runs one piece of work in a transaction of the administrator's role.
 * @throws what the work throws; CommandFailure with exit code 2 when Postgres could not be asked.
 */
export async function asAdmin<T>(terminal: Terminal, work: (tx: Sql) => Promise<T>): Promise<T> {
  const url = adminEnvironment(terminal)[SETTING];
  const database = new Database({ url, poolSize: 1, applicationName: 'payments-ops' });
  try {
    return await database.transaction(work);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    throw new CommandFailure(2, 'Postgres could not be asked, or not as this user. Nothing was changed.');
  } finally {
    await database.close();
  }
}
