// Writes the generated pages: docs/openapi.json and docs/state-machine.md. Needs a build; asks
// neither a database nor a provider. Usage: npm run build && npm run docs
import 'reflect-metadata';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);
const built = (path) => import(new URL(`dist/src/${path}`, root).href);

const { stateMachineDocument } = await built('domain/state-machine-document.js');
const { openApiDocument } = await built('openapi-document.js');
const { createApiApp } = await built('app.factory.js');
const { createLogger } = await built('platform/logger.js');
const { registryOf } = await built('providers/provider-registry.js');
const { Database } = await built('persistence/database.js');

const noKeys = { active: 'none', keys: { none: Buffer.alloc(32).toString('base64') } };
// The routes are all that is read; nothing here connects or is served.
const app = await createApiApp({
  config: { mode: 'development', defaultProvider: 'none', horizonDays: 366 },
  keys: { development: true, encryption: noKeys, digest: noKeys, pepper: noKeys, cursor: noKeys },
  log: createLogger({ level: 'silent', name: 'docs' }),
  database: new Database({ url: 'postgres://127.0.0.1/none', poolSize: 1, applicationName: 'docs' }),
  providers: registryOf([]),
  outbox: { nudge: () => undefined },
});
const write = (name, text) => {
  const file = fileURLToPath(new URL(`docs/${name}`, root));
  writeFileSync(file, text);
  console.log(`wrote docs/${name}`);
};
mkdirSync(new URL('docs/', root), { recursive: true });
write('openapi.json', `${JSON.stringify(openApiDocument(app), null, 2)}\n`);
write('state-machine.md', stateMachineDocument());
await app.close();
