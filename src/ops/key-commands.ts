import { recordAudit, type AuditAction } from '../audit/audit-log.js';
import type { ApiKeyFilter, ListedApiKey } from '../auth/api-key-list.store.js';
import type { MadeApiKey, Revocation } from '../auth/api-key.store.js';
import { readKeysFile, type KeysFile } from '../config/config.js';
import type { Sql } from '../persistence/database.js';
import { createLogger } from '../platform/logger.js';
import { adminEnvironment, asAdmin } from './admin-database.js';
import { operatorActor } from './operator.js';
import { CommandFailure, type Terminal } from './terminal.js';

export type KeyRoleName = 'client' | 'client_readonly';

export interface CreateKey {
  readonly tenantId: string;
  readonly name: string;
  readonly role: KeyRoleName;
  readonly lifeDays?: number;
}

/**
 * Makes a key of the mode of this environment: live in production, else test.
 * @throws CommandFailure: 1 when it is refused, 2 when a setting is missing or nobody could be asked.
 */
export async function createKey(terminal: Terminal, { role, ...key }: CreateKey): Promise<MadeApiKey> {
  // Auth brings the HTTP framework with it: loaded only where it is needed.
  const { insertApiKey } = await import('../auth/api-key.store.js');
  const { SCOPES_OF_KEY_ROLE } = await import('../auth/scopes.js');
  const { keys, mode } = keyFileOf(terminal);
  const made = await change(terminal, async (tx) => {
    const scopes = SCOPES_OF_KEY_ROLE[role];
    const inserted = await insertApiKey(tx, keys, { ...key, scopes, mode });
    await recordAudit(tx, entry(terminal, 'key_made', inserted.tenantId, inserted.id));
    return inserted;
  });
  tell(terminal, 'key_made', made.tenantRef, made.id);
  return made;
}

/** The second key beside the one with this id. @throws CommandFailure as `createKey`. */
export async function rotateKey(
  terminal: Terminal,
  of: { readonly id: string; readonly lifeDays?: number },
): Promise<MadeApiKey> {
  const { rotateApiKey } = await import('../auth/api-key.store.js');
  const { keys, mode } = keyFileOf(terminal);
  const made = await change(terminal, async (tx) => {
    const inserted = await rotateApiKey(tx, keys, { ...of, mode });
    await recordAudit(tx, {
      ...entry(terminal, 'key_rotated', inserted.tenantId, inserted.id),
      detail: { replaces: of.id },
    });
    return inserted;
  });
  tell(terminal, 'key_rotated', made.tenantRef, made.id);
  return made;
}

/** @throws CommandFailure with 2 when nobody could be asked. Twice: `repeated`, with no second entry. */
export async function revokeKey(terminal: Terminal, id: string): Promise<Revocation> {
  const { revokeApiKey } = await import('../auth/api-key.store.js');
  const result = await change(terminal, async (tx) => {
    const revocation = await revokeApiKey(tx, id);
    if (revocation.kind === 'revoked') {
      await recordAudit(tx, entry(terminal, 'key_revoked', revocation.tenantId, id));
    }
    return revocation;
  });
  if (result.kind === 'revoked') tell(terminal, 'key_revoked', result.tenantRef, id);
  return result;
}

export async function listKeys(
  terminal: Terminal,
  filter: ApiKeyFilter,
): Promise<{ readonly keys: readonly ListedApiKey[]; readonly hasMore: boolean }> {
  const { listApiKeys } = await import('../auth/api-key-list.store.js');
  return asAdmin(terminal, (tx) => listApiKeys(tx, filter));
}

async function change<T>(terminal: Terminal, work: (tx: Sql) => Promise<T>): Promise<T> {
  const { KeyRefused } = await import('../auth/api-key.store.js');
  try {
    return await asAdmin(terminal, work);
  } catch (error) {
    if (error instanceof KeyRefused) throw new CommandFailure(1, error.message);
    throw error;
  }
}

type KeyAction = Extract<AuditAction, 'key_made' | 'key_rotated' | 'key_revoked'>;

function entry(terminal: Terminal, action: KeyAction, tenantId: string, target: string) {
  return { tenantId, actor: operatorActor(terminal), action, target };
}

/** The security event, on standard error: the answer on standard output stays the answer. */
function tell(terminal: Terminal, action: KeyAction, tenantRef: string, id: string): void {
  const log = createLogger({
    level: 'info',
    name: 'ops',
    destination: { write: (line) => terminal.err(line.trimEnd()) },
  });
  log.info({ tenant_ref: tenantRef, code: id }, action);
}

/** The pepper under which a new key's digest stands, and what kind of key this environment takes. */
function keyFileOf(terminal: Terminal): { readonly keys: KeysFile; readonly mode: 'live' | 'test' } {
  const env = adminEnvironment(terminal);
  const { PAYMENTS_MODE: mode = 'development', PAYMENTS_KEYS_FILE: path } = env;
  if (mode !== 'development' && mode !== 'production') {
    throw new CommandFailure(2, 'PAYMENTS_MODE is neither development nor production.');
  }
  if (!path) throw new CommandFailure(2, 'PAYMENTS_KEYS_FILE is missing: it holds the pepper of new keys.');
  try {
    return { keys: readKeysFile(path, mode), mode: mode === 'production' ? 'live' : 'test' };
  } catch (error) {
    throw new CommandFailure(2, error instanceof Error ? error.message : 'The key file cannot be read.');
  }
}
