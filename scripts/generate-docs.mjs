// Writes the generated pages: docs/openapi.json and docs/state-machine.md. Needs a build; asks
// neither a database nor a provider. Usage: npm run build && npm run docs
// With --check it writes nothing, and fails when a page differs from what the code says.
import 'reflect-metadata';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);
const built = (path) => import(new URL(`dist/src/${path}`, root).href);

const { stateMachineDocument } = await built('domain/state-machine-document.js');
const { openApiDocument } = await built('openapi-document.js');
const { createApiApp } = await built('app.factory.js');
const { readConfig } = await built('config/config.js');
const { createLogger } = await built('platform/logger.js');
const { registryOf } = await built('providers/provider-registry.js');
const { Database } = await built('persistence/database.js');

const noKeys = { active: 'none', keys: { none: Buffer.alloc(32).toString('base64') } };
const database = new Database({ url: 'postgres://127.0.0.1/none', poolSize: 1, applicationName: 'docs' });
// The routes are all that is read; nothing here connects or is served.
const app = await createApiApp({
  config: readConfig({ PAYMENTS_DATABASE_URL: 'postgres://127.0.0.1/none', PAYMENTS_KEYS_FILE: 'none' }),
  keys: { development: true, encryption: noKeys, digest: noKeys, pepper: noKeys, cursor: noKeys },
  log: createLogger({ level: 'silent', name: 'docs' }),
  database,
  relayDatabase: database,
  providers: registryOf([]),
  outbox: { nudge: () => undefined },
});
const checkOnly = process.argv.includes('--check');
const write = (name, text) => {
  const file = fileURLToPath(new URL(`docs/${name}`, root));
  if (checkOnly) {
    if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
    console.log(`docs/${name} is not what the code says. Run npm run build && npm run docs, and commit it.`);
    process.exitCode = 1;
    return;
  }
  writeFileSync(file, text);
  console.log(`wrote docs/${name}`);
};
mkdirSync(new URL('docs/', root), { recursive: true });
write('openapi.json', `${JSON.stringify(openApiDocument(app), null, 2)}\n`);
write('state-machine.md', stateMachineDocument());
await app.close();
