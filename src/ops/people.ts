import { InvalidArgumentError, type Command } from 'commander';
import { recordAudit } from '../audit/audit-log.js';
import { PERSON_SUBJECT } from '../auth/person-subject.js';
import {
  listRevokedPeople,
  restorePerson,
  revokePerson,
  type PersonRevocation,
  type RevokedPersonRow,
} from '../auth/revoked-person.store.js';
import { LockTimeout } from '../persistence/database-errors.js';
import type { Sql } from '../persistence/database.js';
import { createLogger } from '../platform/logger.js';
import { asAdmin } from './admin-database.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { operatorActor } from './operator.js';
import { rowsTable } from './table.js';
import { CommandFailure, type Terminal } from './terminal.js';

/** `payments people`: whose access was taken away before their tokens end. Everything else is the issuer's. */
export function addPeople(program: Command, session: Session): void {
  const people = program
    .command('people')
    .description('List, revoke and restore people. Without a word after it: list.')
    .addHelpText(
      'after',
      '\nEach of them takes --json. A person is the subject (sub) of the tokens of your issuer, in every tenant. Take the ' +
        'access away there too: this refuses tokens that are out already, and new ones. Runs as payments_admin: ' +
        'PAYMENTS_ADMIN_DATABASE_URL, else the local stack.\n\n' +
        'Example:\n  $ payments people revoke --subject ada@example.com --reason left_company',
    );
  addListPeople(people, session);
  addRevokePerson(people, session);
  addRestorePerson(people, session);
}

function addListPeople(people: Command, session: Session): void {
  const command = addCommand(people, {
    name: 'list',
    isDefault: true,
    summary: 'List who is revoked, the newest first, at most 1,000.',
    example: 'people list',
  });
  act(command, session, async ({ json }: CommonOptions) => {
    const { people: found, hasMore } = await asAdmin(session.terminal, listRevokedPeople);
    session.terminal.out(json ? JSON.stringify({ people: found, has_more: hasMore }) : listText(found));
    if (hasMore && !json) session.terminal.out('There are more.');
    return 0;
  });
}

function addRevokePerson(people: Command, session: Session): void {
  const command = addCommand(people, {
    name: 'revoke',
    summary:
      'Refuse all tokens of a person from now on and void their open proposals. A repeat changes nothing.',
    example: 'people revoke --subject ada@example.com --reason left_company',
  })
    .requiredOption('--subject <sub>', 'who: sub of their tokens, as the issuer spells it', subject)
    .requiredOption('--reason <code>', 'why, in one word: left_company, device_lost, suspected', reasonCode);
  interface Options extends CommonOptions {
    readonly subject: string;
    readonly reason: string;
  }
  act(command, session, async ({ json, ...of }: Options) => {
    const { terminal } = session;
    const by = operatorActor(terminal);
    const revocation = await change(terminal, async (tx) => {
      const result = await revokePerson(tx, { ...of, by });
      if (result.kind === 'repeated') return result;
      await recordAudit(tx, {
        ...{ tenantId: null, actor: by, action: 'person_revoked', target: of.subject, code: of.reason },
        detail: { proposals_voided: result.voided },
      });
      return result;
    });
    if (revocation.kind === 'revoked') tell(terminal, 'person_revoked', of.reason);
    terminal.out(
      json ? JSON.stringify(revokedJson(of.subject, revocation)) : revokedText(of.subject, revocation),
    );
    return 0;
  });
}

function addRestorePerson(people: Command, session: Session): void {
  const command = addCommand(people, {
    name: 'restore',
    summary: 'Take the tokens of a revoked person again. Proposals that were voided stay void.',
    example: 'people restore --subject ada@example.com',
  }).requiredOption('--subject <sub>', 'who: sub of their tokens, as the issuer spells it', subject);
  act(command, session, async ({ json, subject: who }: CommonOptions & { readonly subject: string }) => {
    const { terminal } = session;
    const isRestored = await change(terminal, async (tx) => {
      if (!(await restorePerson(tx, who))) return false;
      const actor = operatorActor(terminal);
      await recordAudit(tx, { tenantId: null, actor, action: 'person_restored', target: who });
      return true;
    });
    if (isRestored) tell(terminal, 'person_restored', null);
    if (json) terminal.out(JSON.stringify({ subject: who, was_revoked: isRestored }));
    else terminal.out(isRestored ? `Tokens of ${who} are taken again.` : `${who} was not revoked.`);
    return 0;
  });
}

async function change<T>(terminal: Terminal, work: (tx: Sql) => Promise<T>): Promise<T> {
  try {
    return await asAdmin(terminal, work);
  } catch (error) {
    if (!(error instanceof LockTimeout)) throw error;
    throw new CommandFailure(
      2,
      'Somebody is deciding and does not come to an end. Nothing was changed: repeat.',
    );
  }
}

/** The security event, on standard error. Who it is stands in the audit log. */
function tell(terminal: Terminal, event: 'person_revoked' | 'person_restored', code: string | null): void {
  const log = createLogger({
    level: 'info',
    name: 'ops',
    destination: { write: (line) => terminal.err(line.trimEnd()) },
  });
  log.info(code === null ? {} : { code }, event);
}

/** Who copies `person:ada` from a history means ada; as it stands it would revoke nobody, and say nothing. */
function subject(text: string): string {
  if (PERSON_SUBJECT.test(text) && !text.startsWith('person:')) return text;
  throw new InvalidArgumentError(
    'The subject of a person, without person: before it: 1 to 128 letters, digits or . _ : @ | + -',
  );
}

/** It stands in the audit log, which takes no free text. */
function reasonCode(text: string): string {
  if (/^[a-z][a-z0-9_]{1,63}$/.test(text)) return text;
  throw new InvalidArgumentError('One word of small letters, digits and _, such as left_company.');
}

function revokedJson(who: string, result: PersonRevocation): object {
  const voided = result.kind === 'revoked' ? result.voided : 0;
  return { subject: who, result: result.kind, proposals_voided: voided };
}

function revokedText(who: string, result: PersonRevocation): string {
  if (result.kind === 'repeated') return `${who} was revoked before.`;
  const voided = result.voided === 1 ? '1 open proposal is' : `${result.voided} open proposals are`;
  return `${who} is revoked: no token is taken any more, ${voided} void.`;
}

function listText(people: readonly RevokedPersonRow[]): string {
  if (people.length === 0) return 'Nobody is revoked.';
  return rowsTable(
    ['subject', 'revoked', 'by', 'reason'],
    people.map((person) => [person.subject, person.revoked_at, person.revoked_by, person.reason]),
  );
}
