import 'reflect-metadata';
import { createApiApp } from './app.factory.js';
import { readConfig } from './config/config.js';
import { neededUrl } from './config/database-settings.js';
import { followKeyFile } from './encryption/follow-key-file.js';
import { startHealthServer } from './http/health-server.js';
import { READINESS_CHECK_MS, readiness } from './http/readiness.js';
import { ensureLanes } from './lanes/lane.store.js';
import { metricsText } from './metrics/metrics.js';
import { startProcessGauges } from './metrics/process-gauges.js';
import { createOrchestration } from './orchestration/temporal-client.js';
import { OutboxRelay } from './outbox/outbox-relay.js';
import { StorageUnavailable } from './persistence/database-errors.js';
import { databaseStanding } from './persistence/database-standing.js';
import { Database } from './persistence/database.js';
import { refuseToStart, StartUpRefused } from './persistence/start-up-check.js';
import { pause } from './platform/clock.js';
import { createFaultLog } from './platform/fault-log.js';
import { logLastWords } from './platform/last-words.js';
import { createLogger } from './platform/logger.js';
import { createProviderRegistry, type ProviderRegistry } from './providers/provider-registry.js';

/** How long to wait before Postgres is asked again while it cannot be reached (ms). */
const RETRY_MS = 1_000;
/** The relay publishes one batch at a time and plans beside it. */
const RELAY_POOL = 3;

const config = readConfig(process.env);
const relayUrl = neededUrl(config.database, 'relay');
const log = createLogger({ level: config.logLevel, name: 'api' });
logLastWords(log);
const keys = followKeyFile(config, log);
const providers = createProviderRegistry(config);
const database = new Database({ ...config.database, applicationName: 'payments-api' });
const relayDatabase = new Database({
  url: relayUrl,
  poolSize: RELAY_POOL,
  applicationName: 'payments-api-relay',
});
/** A connection of its own: load on the pool must not take every API out of its balancer at once. */
const probe = new Database({
  ...config.database,
  poolSize: 1,
  applicationName: 'payments-api-ready',
  queryMs: READINESS_CHECK_MS,
});
const orchestration = createOrchestration(config.temporal);
/** The relay beside the API hears of each commit at once; the workers' relays find what it leaves. */
const relay = new OutboxRelay(relayDatabase, orchestration.starter, {
  published: () => undefined,
  fault: createFaultLog(log),
});

let stopping = false;
/** Told at once when Postgres answers; while it does not, the API serves what it can. */
let mayStart = await askPostgres();
const app = await createApiApp({ config, keys, log, database, relayDatabase, providers, outbox: relay });
const stopGauges = startProcessGauges(database);
const health = await startHealthServer({
  ...config.health,
  live: () => true,
  ready: readiness({
    serving: { required: true, run: () => mayStart && !stopping },
    postgres: { required: true, run: () => databaseStanding(probe) },
  }),
  metrics: metricsText,
});

app
  .getHttpAdapter()
  .getInstance()
  .addHook('preClose', (done) => {
    stopping = true;
    done();
  });
app
  .getHttpAdapter()
  .getInstance()
  .addHook('onClose', async () => {
    stopGauges();
    await relay.stop();
    await Promise.all([
      orchestration.close(),
      health.stop(),
      providers.closeAll(),
      database.close(),
      relayDatabase.close(),
      probe.close(),
    ]);
  });
// Exit code 0: a stop that was asked for is no failure.
app.enableShutdownHooks(undefined, { useProcessExit: true });
await app.listen(config.api.port, config.api.host);
log.info({}, 'listening');
void begin();

/**
 * Whether this process may run on this server with these log-ins.
 * @returns false when Postgres could not be asked. @throws StartUpRefused, which ends the process.
 */
async function askPostgres(): Promise<boolean> {
  try {
    await refuseToStart(database, 'payments_api');
    await refuseToStart(relayDatabase, 'payments_relay');
    return true;
  } catch (error) {
    if (error instanceof StorageUnavailable) return false;
    // What a person must change stands there in whole sentences; the log keeps to codes.
    if (error instanceof StartUpRefused) process.stderr.write(`${error.message}\n`);
    throw error;
  }
}

/** The API serves before Postgres does; what needs it begins as soon as it can. */
async function begin(): Promise<void> {
  while (!stopping) {
    try {
      mayStart ||= await askPostgres();
      if (mayStart) break;
    } catch (error) {
      process.exitCode = 1;
      log.fatal({ err: error }, 'start_refused');
      await app.close();
      process.exit();
    }
    await pause(RETRY_MS);
  }
  if (stopping) return;
  relay.start();
  await makeLanes(providers);
}

async function makeLanes(registry: ProviderRegistry): Promise<void> {
  const all = registry.names().flatMap((name) => registry.get(name) ?? []);
  while (!stopping) {
    try {
      await ensureLanes(database, all);
      return;
    } catch (error) {
      log.warn({ err: error }, 'lanes_not_made');
      await pause(RETRY_MS);
    }
  }
}
