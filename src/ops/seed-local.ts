import type { Command } from 'commander';
import type { KeyRole } from '../auth/scopes.js';
import { readConfig, readKeysFile, type KeysFile } from '../config/config.js';
import { Database, type Statement } from '../persistence/database.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { databaseUrl } from './environment.js';
import { rowsTable } from './table.js';
import { CommandFailure, type Terminal } from './terminal.js';

const TENANTS = [
  // Agrees to a provider that can neither recognise a repeat nor be asked: up to 1,000.00 a payment.
  { id: 'local', pseudonym: 'tenant-local', classDMaxMinor: 100_000n },
  { id: 'local-other', pseudonym: 'tenant-local-other', classDMaxMinor: null },
] as const;

const KEYS: readonly { readonly name: string; readonly tenantId: string; readonly role: KeyRole }[] = [
  { name: 'client', tenantId: 'local', role: 'client' },
  { name: 'client_readonly', tenantId: 'local', role: 'client_readonly' },
  { name: 'other_tenant', tenantId: 'local-other', role: 'client' },
];

const INSERT_TENANT: Statement = {
  name: 'seed-local-tenant',
  text: 'INSERT INTO tenant (id, pseudonym) VALUES ($1, $2) ON CONFLICT DO NOTHING',
};
/** A stack of the release before has the tenant already. */
const CONSENT: Statement = {
  name: 'seed-local-consent',
  text: 'UPDATE tenant SET allows_class_d = $2::bigint IS NOT NULL, class_d_max_minor = $2 WHERE id = $1',
};
/** At most two keys of a name may be active, and the text of older ones is lost. */
const REVOKE: Statement = {
  name: 'seed-local-revoke',
  text: `UPDATE api_key SET revoked_at = clock_timestamp()
          WHERE tenant_id = $1 AND name = $2 AND revoked_at IS NULL`,
};

/** `payments seed-local`: two tenants and their API keys, for a local stack. */
export function addSeedLocal(program: Command, session: Session): void {
  const command = addCommand(program, {
    name: 'seed-local',
    summary: 'Make two tenants and new API keys in a local stack. Older keys of these names are revoked.',
    example: 'seed-local --json',
  });
  act(command, session, async (options: CommonOptions) => {
    const keys = await seed(session.terminal);
    if (options.json) session.terminal.out(JSON.stringify({ api_keys: keys }));
    else session.terminal.out(rowsTable(['key of', 'text, shown only now'], Object.entries(keys)));
    return 0;
  });
}

async function seed(terminal: Terminal): Promise<Record<string, string>> {
  // Before the rest is read, which in production has much else to refuse.
  if (terminal.env['PAYMENTS_MODE'] === 'production') {
    throw new CommandFailure(
      1,
      'seed-local never runs in production mode. Make tenants and keys one by one.',
    );
  }
  const config = readConfig(terminal.env);
  const keysFile = readKeysFile(config.keysFile, config.mode);
  // Development is the default mode, so that alone does not prove where we are.
  if (!keysFile.development) {
    throw new CommandFailure(
      1,
      'seed-local needs a key file that is marked as development; this one is not.',
    );
  }
  const url = databaseUrl(terminal, 'PAYMENTS_ADMIN_DATABASE_URL');
  const database = new Database({ url, poolSize: 2, applicationName: 'payments-ops' });
  try {
    return await makeTenantsAndKeys(database, keysFile);
  } finally {
    await database.close();
  }
}

async function makeTenantsAndKeys(database: Database, keysFile: KeysFile): Promise<Record<string, string>> {
  // Brings the HTTP framework with it: loaded only here.
  const { createApiKey } = await import('../auth/api-key.store.js');
  const { SCOPES_OF_KEY_ROLE } = await import('../auth/scopes.js');
  for (const { id, pseudonym, classDMaxMinor } of TENANTS) {
    await database.query(INSERT_TENANT, [id, pseudonym]);
    await database.query(CONSENT, [id, classDMaxMinor]);
  }
  const texts: Record<string, string> = {};
  for (const { role, ...key } of KEYS) {
    await database.query(REVOKE, [key.tenantId, key.name]);
    const scopes = SCOPES_OF_KEY_ROLE[role];
    texts[key.name] = (await createApiKey(database, keysFile, { ...key, scopes, mode: 'test' })).text;
  }
  return texts;
}
