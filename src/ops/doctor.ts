import type { Command } from 'commander';
import { Listr } from 'listr2';
import { readConfig, readKeysFile, type Config } from '../config/config.js';
import { serviceEnvironment } from './environment.js';
import { Database } from '../persistence/database.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { failed, ok, skipped, type Check } from './doctor/check.js';
import { postgresChecks } from './doctor/postgres-checks.js';
import { rowsTable } from './table.js';

/** `payments doctor`: looks at everything that a process of this service needs. */
export function addDoctor(program: Command, session: Session): void {
  const command = addCommand(program, {
    name: 'doctor',
    summary: 'Check settings, keys, Postgres, Temporal, the provider and the clock. Exit code 1: one failed.',
    example: 'doctor',
  });
  act(command, session, async (options: CommonOptions) => {
    const checks = await examine(session, options);
    const isWell = !checks.some((check) => check.result === 'failed');
    session.terminal.out(options.json ? JSON.stringify({ ok: isWell, checks }) : asTable(checks));
    return isWell ? 0 : 1;
  });
}

async function examine(session: Session, options: CommonOptions): Promise<readonly Check[]> {
  const name = 'configuration';
  let config: Config;
  try {
    config = readConfig(serviceEnvironment(session.terminal));
  } catch (error) {
    const rest = ['key file', 'postgres', 'temporal', 'provider'];
    return [
      failed(name, (error as Error).message),
      ...rest.map((each) => skipped(each, 'needs the configuration')),
    ];
  }
  return [
    ok(name, `mode ${config.mode}`),
    keyFileCheck(config),
    ...(await askServices(config, session, options)),
  ];
}

function keyFileCheck(config: Config): Check {
  try {
    const keys = readKeysFile(config.keysFile, config.mode);
    return ok('key file', keys.development ? 'development keys' : 'four sets of keys');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // A syntax error quotes what it read, and that would be a key.
    const text =
      code === undefined && !(error instanceof SyntaxError) ? (error as Error).message : 'It cannot be read.';
    return failed('key file', `${text}${code === undefined ? '' : ` (${code})`} See PAYMENTS_KEYS_FILE.`);
  }
}

async function askServices(
  config: Config,
  session: Session,
  options: CommonOptions,
): Promise<readonly Check[]> {
  const database = new Database({ ...config.database, poolSize: 2, applicationName: 'payments-ops' });
  // The clients of Temporal and of providers are loaded only where they are needed.
  const services = await import('./doctor/service-checks.js');
  const parts: Record<'postgres' | 'temporal' | 'provider', readonly Check[]> = {
    postgres: [],
    temporal: [],
    provider: [],
  };
  const tasks = new Listr(
    [
      { title: 'Postgres', task: async () => void (parts.postgres = await postgresChecks(database)) },
      {
        title: 'Temporal',
        task: async () => void (parts.temporal = [await services.temporalCheck(config.temporal)]),
      },
      { title: 'Providers', task: async () => void (parts.provider = await services.providerChecks(config)) },
    ],
    { concurrent: true, renderer: session.terminal.isInteractive && !options.json ? 'default' : 'silent' },
  );
  try {
    await tasks.run();
  } finally {
    await database.close();
  }
  return [...parts.postgres, ...parts.temporal, ...parts.provider];
}

const WORDS: Readonly<Record<Check['result'], string>> = {
  ok: 'ok',
  warning: 'warning',
  failed: 'FAILED',
  skipped: 'skipped',
};

function asTable(checks: readonly Check[]): string {
  return rowsTable(
    ['check', 'result', 'detail'],
    checks.map((check) => [check.name, WORDS[check.result], check.detail]),
  );
}
