import type { Command } from 'commander';
import { recordAudit, type AuditAction } from '../audit/audit-log.js';
import { readKeysFile, type KeysFile } from '../config/config.js';
import type { KeySet } from '../config/key-file.js';
import { withSecretFiles } from '../config/secret-files.js';
import { KeyFileEncryption } from '../encryption/key-encryption.js';
import { deleteDataKeys, rewrapDataKeys } from '../encryption/key-rotation.js';
import { retireKeys, type Retiring } from '../encryption/retire-keys.js';
import { keyUsage, type KeyUsage } from '../encryption/key-usage.js';
import { Database } from '../persistence/database.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { databaseUrlIn, serviceEnvironment, type DatabaseVariable } from './environment.js';
import { operatorActor } from './operator.js';
import { rowsTable } from './table.js';
import { CommandFailure, type ExitCode, type Terminal } from './terminal.js';

/** Counting reads whole tables (ms). */
const COUNT_WITHIN_MS = 600_000;
/** The driver waits a little longer than the server, so that the server's word is heard. */
const DRIVER_MARGIN_MS = 5_000;

/** `payments encryption`: the keys that seal destinations; as payments_admin and payments_read. */
export function addEncryption(program: Command, session: Session): void {
  const encryption = program
    .command('encryption')
    .description(
      'Show which keys of the key file are still needed, rotate them, shred a tenant. Without a word after it: status.',
    )
    .addHelpText('after', '\nEach of them takes --json.\n\nExample:\n  $ payments encryption rotate');
  addStatus(encryption, session);
  addRotate(encryption, session);
  addShred(encryption, session);
}

function addStatus(encryption: Command, session: Session): void {
  const command = addCommand(encryption, {
    name: 'status',
    isDefault: true,
    summary:
      'Show every key id, and how many rows need it. Exit code 1 when rows need a key that is missing.',
    example: 'encryption status',
  });
  act(command, session, async (options: CommonOptions) => {
    const usage = await withDatabases(session.terminal, ({ keys, admin, read }) =>
      keyUsage(keys, { admin, read: read(), limitMs: COUNT_WITHIN_MS }),
    );
    session.terminal.out(options.json ? JSON.stringify({ keys: usage }) : usageTable(usage));
    return usage.some(({ standing }) => standing === 'missing') ? 1 : 0;
  });
}

function addRotate(encryption: Command, session: Session): void {
  const command = addCommand(encryption, {
    name: 'rotate',
    summary:
      'Retire every other key-encryption key, and wrap all data keys with the active one. Payments are not touched. Safe to repeat.',
    example: 'encryption rotate',
  });
  act(command, session, async (options: CommonOptions): Promise<ExitCode> => {
    const { active, retired, rewrapped, unreadable } = await withDatabases(session.terminal, (parts) =>
      rotate(parts, operatorActor(session.terminal)),
    );
    const failed = Object.fromEntries(unreadable);
    if (options.json) {
      session.terminal.out(JSON.stringify({ active, retired, rewrapped, unreadable: failed }));
    } else {
      if (retired.length > 0) session.terminal.out(`Retired ${retired.join(', ')}.`);
      session.terminal.out(`Wrapped ${rewrapped} data keys with ${active}.`);
      for (const [id, code] of unreadable) session.terminal.err(`${id} does not open: ${code}.`);
    }
    return unreadable.size > 0 ? 1 : 0;
  });
}

async function rotate({ keys, admin }: Parts, actor: string) {
  const kek = KeyFileEncryption.of(keys.encryption);
  const active = kek.activeId;
  // Retired first: what is stored afterwards is wrapped with the active key, so that nothing slips in behind.
  const { retired } = await retire(admin, keys.encryption, actor);
  const done = await rewrapDataKeys(admin, kek);
  // Each portion is a commit of its own, so its entry follows: a rotation that was cut off is run again.
  await recordAudit(admin, {
    tenantId: null,
    actor,
    action: 'data_keys_rewrapped',
    target: active,
    detail: { rewrapped: done.rewrapped, unreadable: done.unreadable.size },
  });
  return { active, retired, ...done };
}

async function retire(admin: Database, set: KeySet, actor: string): Promise<Retiring> {
  return admin.transaction(async (tx) => {
    const done = await retireKeys(tx, set.active, Object.keys(set.keys));
    const record = (action: AuditAction, target: string): Promise<void> =>
      recordAudit(tx, { tenantId: null, actor, action, target });
    if (done.isReinstated) await record('key_encryption_key_reinstated', set.active);
    for (const id of done.retired) await record('key_encryption_key_retired', id);
    return done;
  });
}

interface ShredOptions extends CommonOptions {
  readonly tenant: string;
  readonly confirm?: string;
}

function addShred(encryption: Command, session: Session): void {
  const command = addCommand(encryption, {
    name: 'shred',
    summary: "Delete a tenant's data keys: its destinations can never be opened again, by nobody.",
    example: 'encryption shred --tenant acme --confirm acme',
  })
    .requiredOption('--tenant <id>', 'whose data keys')
    .option('--confirm <id>', 'the same again');
  act(command, session, async (options: ShredOptions) => {
    const { tenant, confirm } = options;
    if (confirm !== tenant) {
      throw new CommandFailure(
        2,
        `This cannot be undone: what ${tenant} has scheduled will be held, and no destination of it opens again. ` +
          'Revoke its API keys first, then repeat with --confirm and the same id. Backups that are older keep the keys.',
      );
    }
    const deleted = await withDatabases(session.terminal, ({ admin }) =>
      admin.transaction(async (tx) => {
        const count = await deleteDataKeys(tx, tenant);
        await recordAudit(tx, {
          tenantId: tenant,
          actor: operatorActor(session.terminal),
          action: 'data_keys_deleted',
          target: tenant,
          detail: { deleted: count },
        });
        return count;
      }),
    );
    session.terminal.out(
      options.json
        ? JSON.stringify({ tenant, deleted })
        : `Deleted ${deleted} data keys of ${tenant}. Running processes forget them within five minutes.`,
    );
    return 0;
  });
}

interface Parts {
  readonly keys: KeysFile;
  readonly admin: Database;
  /** Opened by the commands that count. */
  readonly read: () => Database;
}

async function withDatabases<T>(terminal: Terminal, work: (parts: Parts) => Promise<T>): Promise<T> {
  const env = withSecretFiles(serviceEnvironment(terminal));
  const file = env['PAYMENTS_KEYS_FILE'];
  if (file === undefined) throw new CommandFailure(2, 'PAYMENTS_KEYS_FILE is missing.');
  const keys = readKeysFile(file, env['PAYMENTS_MODE'] === 'production' ? 'production' : 'development');
  const opened: Database[] = [];
  const open = (variable: DatabaseVariable): Database => {
    const made = new Database({
      url: databaseUrlIn(env, variable),
      poolSize: 1,
      applicationName: 'payments-ops',
      queryMs: COUNT_WITHIN_MS + DRIVER_MARGIN_MS,
    });
    opened.push(made);
    return made;
  };
  try {
    return await work({
      keys,
      admin: open('PAYMENTS_ADMIN_DATABASE_URL'),
      read: () => open('PAYMENTS_READ_DATABASE_URL'),
    });
  } finally {
    for (const database of opened) await database.close();
  }
}

function usageTable(usage: readonly KeyUsage[]): string {
  return rowsTable(
    ['keys of', 'id', 'standing', 'rows that need it'],
    usage.map(({ purpose, id, standing, rows }) => [
      purpose,
      id,
      standing,
      Object.entries(rows)
        .map(([what, count]) => `${count} ${what}`)
        .join(', ') || '-',
    ]),
  );
}
