import 'reflect-metadata';
import { createApiApp } from './app.factory.js';
import { readConfig } from './config/config.js';
import { followKeyFile } from './encryption/follow-key-file.js';
import { startHealthServer } from './http/health-server.js';
import { READINESS_CHECK_MS, readiness } from './http/readiness.js';
import { ensureLanes } from './lanes/lane.store.js';
import { metricsText } from './metrics/metrics.js';
import { startProcessGauges } from './metrics/process-gauges.js';
import { createOrchestration } from './orchestration/temporal-client.js';
import { OutboxRelay } from './outbox/outbox-relay.js';
import { databaseStanding } from './persistence/database-standing.js';
import { Database } from './persistence/database.js';
import { pause } from './platform/clock.js';
import { createFaultLog } from './platform/fault-log.js';
import { createLogger } from './platform/logger.js';
import { createProviderRegistry, type ProviderRegistry } from './providers/provider-registry.js';

/** How long to wait before Postgres is asked again while it cannot be reached (ms). */
const RETRY_MS = 1_000;

const config = readConfig(process.env);
const log = createLogger({ level: config.logLevel, name: 'api' });
const keys = followKeyFile(config, log);
const providers = createProviderRegistry(config);
const database = new Database({ ...config.database, applicationName: 'payments-api' });
/** A connection of its own: load on the pool must not take every API out of its balancer at once. */
const probe = new Database({
  ...config.database,
  poolSize: 1,
  applicationName: 'payments-api-ready',
  queryMs: READINESS_CHECK_MS,
});
const orchestration = createOrchestration(config.temporal);
/** The relay beside the API hears of each commit at once; the workers' relays find what it leaves. */
const relay = new OutboxRelay(database, orchestration.starter, {
  published: () => undefined,
  fault: createFaultLog(log),
});

let stopping = false;
const app = await createApiApp({ config, keys, log, database, providers, outbox: relay });
const stopGauges = startProcessGauges(database);
const health = await startHealthServer({
  ...config.health,
  live: () => true,
  ready: readiness({
    serving: { required: true, run: () => !stopping },
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
      probe.close(),
    ]);
  });
// Exit code 0: a stop that was asked for is no failure.
app.enableShutdownHooks(undefined, { useProcessExit: true });
await app.listen(config.api.port, config.api.host);
relay.start();
log.info({}, 'listening');
void makeLanes(providers);

/** The API serves before Postgres does; its lanes are made as soon as it can. */
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
