import { InvalidArgumentError, type Command } from 'commander';
import { callApi } from './api/api-client.js';
import { addApiCommand, paymentIdArgument, versionArgument } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import { addPersonOption, personKey, type PersonOptions } from './api/person-option.js';
import { act, type Session } from './command.js';
import { CommandFailure } from './terminal.js';

const USUAL = 'operator-1';

interface Options extends PersonOptions {
  readonly ifVersion: string;
  readonly outcome: string;
  readonly reason: string;
  readonly evidence?: readonly string[];
  readonly proof?: string;
  readonly statement?: string;
}

interface Resolution {
  readonly id: string;
  readonly outcome: string;
  readonly proposed_by: string;
  readonly expires_at: string;
}

function evidenceArgument(text: string, before: readonly string[] = []): readonly string[] {
  if (/^[1-9][0-9]{0,17}$/.test(text)) return [...before, text];
  throw new InvalidArgumentError('Evidence is named by its number, as payments review show prints it.');
}

/** `payments resolve`: one person proposes how a review ends; nothing moves. */
export function addResolve(program: Command, session: Session): void {
  const command = addApiCommand(program, {
    name: 'resolve',
    summary: 'Propose how the review of a payment ends. Another person has to approve it.',
    example:
      'resolve pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk --if-version 5 --outcome succeeded --reason settlement_shows --evidence 4711',
  })
    .argument('<payment>', 'id of the payment', paymentIdArgument)
    .requiredOption('--if-version <n>', 'the version that you looked at', versionArgument)
    .requiredOption('--outcome <word>', 'succeeded, failed, submitted, resend or resend_new_generation')
    .requiredOption('--reason <code>', 'why, as one word (see the review page)')
    .option('--evidence <id>', 'a row of evidence it rests on; give it again for more', evidenceArgument)
    .option('--proof <kind>', 'provider_statement, stored_refusal or absence_proof; with --statement')
    .option('--statement <text>', 'who said or found it, when, and where it is kept');
  addPersonOption(command, USUAL);
  act(command, session, async (id: string, options: Options) => {
    if ((options.proof === undefined) !== (options.statement === undefined)) {
      throw new CommandFailure(2, 'A proof has a kind and a statement: give --proof and --statement.');
    }
    const target = apiTarget(session.terminal, options, personKey(options, USUAL));
    const { body } = await callApi<Resolution>(target, {
      method: 'POST',
      path: `/v1/payments/${id}/resolutions`,
      headers: { 'if-match': options.ifVersion },
      body: {
        outcome: options.outcome,
        reason_code: options.reason,
        ...(options.evidence ? { evidence: options.evidence } : {}),
        ...(options.proof ? { proof: { kind: options.proof, statement: options.statement } } : {}),
      },
    });
    session.terminal.out(options.json ? JSON.stringify(body) : sentence(id, body));
    return 0;
  });
}

function sentence(id: string, { id: resolution, outcome, proposed_by: by, expires_at: until }: Resolution) {
  return (
    `${by} proposed ${outcome}. Nothing has moved: another person approves it until ${until} with\n` +
    `  payments approve ${id} ${resolution}`
  );
}
