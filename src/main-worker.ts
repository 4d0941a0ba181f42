import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { readConfig } from './config/config.js';
import { neededUrl } from './config/database-settings.js';
import { followKeyFile } from './encryption/follow-key-file.js';
import { StartUpRefused } from './persistence/start-up-check.js';
import { logLastWords } from './platform/last-words.js';
import { createLogger } from './platform/logger.js';
import { createProviderRegistry } from './providers/provider-registry.js';
import { WorkerModule } from './worker.module.js';
import { WorkerProcess } from './worker/worker-process.js';

const config = readConfig(process.env);
for (const pool of ['relay', 'read'] as const) neededUrl(config.database, pool);
const log = createLogger({ level: config.logLevel, name: 'worker' });
logLastWords(log);
const keys = followKeyFile(config, log);
const providers = createProviderRegistry(config);
const app = await NestFactory.createApplicationContext(WorkerModule.of({ config, keys, log, providers }), {
  logger: false,
});
const worker = app.get(WorkerProcess);
// Nest's own signal hooks would close things under the calls in flight: this process owns its order.
process.on('SIGTERM', () => worker.stop());
process.on('SIGINT', () => worker.stop());
try {
  await worker.run();
} catch (error) {
  log.fatal({ err: error }, 'worker_failed');
  // What a person must change stands there in whole sentences.
  if (error instanceof StartUpRefused) process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
await app.close();
// Timers of libraries must not keep a stopped worker alive.
process.exit();
