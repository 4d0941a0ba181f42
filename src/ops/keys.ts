import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ListedApiKey } from '../auth/api-key-list.store.js';
import type { MadeApiKey, Revocation } from '../auth/api-key.store.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { createKey, listKeys, revokeKey, rotateKey, type KeyRoleName } from './key-commands.js';
import { factsTable, rowsTable } from './table.js';
import { CommandFailure } from './terminal.js';

/** `payments keys`: the API keys of machines. People log in with their issuer. */
export function addKeys(program: Command, session: Session): void {
  const keys = program
    .command('keys')
    .description('Make, list, rotate and revoke the API keys of clients.')
    .addHelpText(
      'after',
      '\nEach of them takes --json. Runs as payments_admin: PAYMENTS_ADMIN_DATABASE_URL, PAYMENTS_KEYS_FILE and PAYMENTS_MODE, else the local ' +
        'stack.\n\nExample:\n  $ payments keys create --tenant shop --name checkout --role client',
    );
  addCreateKey(keys, session);
  addListKeys(keys, session);
  addRotateKey(keys, session);
  addRevokeKey(keys, session);
}

function addCreateKey(keys: Command, session: Session): void {
  const command = addCommand(keys, {
    name: 'create',
    summary: 'Make a key. Its text is printed once, on standard output, and stored nowhere.',
    example: 'keys create --tenant shop --name checkout --role client --life-days 90',
  })
    .requiredOption('--tenant <id>', 'whose payments the key is for')
    .requiredOption('--name <name>', 'what the key is for; two active keys may share it')
    .addOption(
      new Option('--role <role>', 'what it may do: client creates, reads, cancels and reschedules')
        .choices(['client', 'client_readonly'] satisfies KeyRoleName[])
        .makeOptionMandatory(),
    )
    .option('--life-days <n>', 'days until it expires, at most and else 365', days);
  interface Options extends CommonOptions {
    readonly tenant: string;
    readonly name: string;
    readonly role: KeyRoleName;
    readonly lifeDays?: number;
  }
  act(command, session, async ({ json, tenant, ...rest }: Options) => {
    const key = await createKey(session.terminal, { tenantId: tenant, ...rest });
    session.terminal.out(json ? JSON.stringify({ key: madeJson(key) }) : madeText(key));
    return 0;
  });
}

function addListKeys(keys: Command, session: Session): void {
  const command = addCommand(keys, {
    name: 'list',
    summary: 'List active keys, without their secrets, which are stored nowhere.',
    example: 'keys list --tenant shop',
  })
    .option('--tenant <id>', 'only of this tenant')
    .option('--pepper <id>', 'only under this pepper; when none is left, it may leave the key file')
    .option('--all', 'also revoked and expired keys');
  interface Options extends CommonOptions {
    readonly tenant?: string;
    readonly pepper?: string;
    readonly all?: boolean;
  }
  act(command, session, async ({ json, tenant, pepper, all }: Options) => {
    const filter = { tenantId: tenant ?? null, pepperId: pepper ?? null, isAll: all ?? false };
    const { keys: found, hasMore } = await listKeys(session.terminal, filter);
    session.terminal.out(json ? JSON.stringify({ keys: found, has_more: hasMore }) : listText(found));
    if (hasMore && !json) session.terminal.out('There are more: name a tenant.');
    return 0;
  });
}

function addRotateKey(keys: Command, session: Session): void {
  const command = addCommand(keys, {
    name: 'rotate',
    summary: 'Make a second key like an active one, which goes on working until you revoke it.',
    example: 'keys rotate k3xw5q2m7abc',
  })
    .argument('<key>', 'id of the key: its third part', keyId)
    .option('--life-days <n>', 'days until the new one expires, at most and else 365', days);
  act(command, session, async (id: string, options: CommonOptions & { readonly lifeDays?: number }) => {
    const { json, lifeDays } = options;
    const key = await rotateKey(session.terminal, { id, ...(lifeDays === undefined ? {} : { lifeDays }) });
    if (json) session.terminal.out(JSON.stringify({ key: madeJson(key), replaces: id }));
    else
      session.terminal.out(`${madeText(key)}\nWhen nobody uses ${id} any more: payments keys revoke ${id}`);
    return 0;
  });
}

function addRevokeKey(keys: Command, session: Session): void {
  const command = addCommand(keys, {
    name: 'revoke',
    summary: 'Revoke a key: every process refuses it within 5 seconds. A repeat changes nothing.',
    example: 'keys revoke k3xw5q2m7abc',
  }).argument('<key>', 'id of the key: its third part', keyId);
  act(command, session, async (id: string, { json }: CommonOptions) => {
    const { kind } = await revokeKey(session.terminal, id);
    if (kind === 'absent') throw new CommandFailure(1, `There is no key ${id}. List the keys.`);
    session.terminal.out(json ? JSON.stringify({ id, result: kind }) : revokedText(id, kind));
    return 0;
  });
}

function days(text: string): number {
  const value = Number(text);
  if (/^[0-9]{1,3}(\.[0-9]+)?$/.test(text) && value > 0 && value <= 365) return value;
  throw new InvalidArgumentError('A number of days above 0, at most 365.');
}

/** The whole key would stand in the shell's history: only its id is an argument. */
function keyId(text: string): string {
  if (/^[a-z2-7]{12}$/.test(text)) return text;
  throw new InvalidArgumentError(
    'The id of a key has 12 characters: ps_test_<this>_… Never paste the whole key.',
  );
}

function madeJson(key: MadeApiKey): object {
  const { id, text, tenantId, name, scopes, expiresAt } = key;
  return { id, text, tenant_id: tenantId, name, scopes, expires_at: expiresAt };
}

function madeText(key: MadeApiKey): string {
  const facts = factsTable([
    ['id', key.id],
    ['tenant', key.tenantId],
    ['name', key.name],
    ['scopes', key.scopes.join(' ')],
    ['expires', key.expiresAt],
  ]);
  return `${facts}\nThe key, shown only now:\n${key.text}`;
}

function listText(keys: readonly ListedApiKey[]): string {
  if (keys.length === 0) return 'No keys.';
  return rowsTable(
    ['id', 'tenant', 'name', 'scopes', 'pepper', 'created', 'ends', 'status'],
    keys.map((key) => [
      ...[key.id, key.tenant_id, key.name, key.scopes.join('\n'), key.pepper_key_id, key.created_at],
      ...[key.revoked_at ?? key.expires_at, key.status],
    ]),
  );
}

function revokedText(id: string, kind: Revocation['kind']): string {
  return kind === 'repeated'
    ? `${id} was revoked before.`
    : `${id} is revoked: every process refuses it within 5 seconds.`;
}
