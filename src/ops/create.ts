import { InvalidArgumentError, type Command } from 'commander';
import { parseIdempotencyKey } from '../domain/idempotency-key.js';
import { wallMs } from '../platform/clock.js';
import { callApi } from './api/api-client.js';
import { addApiCommand, printPayment, type ApiCommandOptions } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import type { Payment } from './api/payment-table.js';
import { durationArgument, executeAtOf } from './api/times.js';
import { act, type Session } from './command.js';
import { CommandFailure } from './terminal.js';

interface Options extends ApiCommandOptions {
  readonly idempotencyKey?: string;
  readonly amount: number;
  readonly currency: string;
  readonly destination: string;
  readonly executeAt?: string;
  readonly in?: number;
  readonly notAfter?: string;
  readonly reference?: string;
  readonly description?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly provider?: string;
}

const WHY_A_KEY =
  'Give --idempotency-key: your own name for this one payment. Repeating the command with the same key ' +
  'can never pay twice, so it must not be made up anew for each try.';

/** `payments create`: schedules a payment. */
export function addCreate(program: Command, session: Session): void {
  const command = addApiCommand(program, {
    name: 'create',
    summary: 'Schedule a payment. A repeat under the same idempotency key answers with the same payment.',
    example:
      'create --idempotency-key invoice-2041 --amount 1999 --currency EUR --destination acct_1032D82eZvKYlo2C --in 10s',
  })
    .option('--idempotency-key <key>', 'required: one key per intended payment, the same on every retry')
    .requiredOption('--amount <minor units>', 'whole minor units: 1999 is 19.99 EUR', amountArgument)
    .requiredOption('--currency <code>', 'ISO 4217 in upper case')
    .requiredOption('--destination <text>', "where the money goes, in the provider's words")
    .option('--execute-at <time>', 'RFC 3339 with an offset, or now')
    .option(
      '--in <duration>',
      "10s, 5m, 2h, 30d from this machine's clock; a retry gives --execute-at",
      durationArgument,
    )
    .option('--not-after <time>', "the payment expires after it; absent: the tenant's limit")
    .option('--reference <text>', 'your own name for what is being paid')
    .option('--description <text>', 'text for the payee')
    .option('--metadata <name=value>', 'a pair of your own; may be repeated', pairArgument)
    .option('--provider <name>', "absent: the service's default");
  act(command, session, (options: Options) => create(session, options));
}

function amountArgument(text: string): number {
  if (/^[1-9][0-9]{0,11}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Whole minor units, 1 to 12 digits: 1999 for 19.99 EUR.');
}

function pairArgument(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const split = text.indexOf('=');
  if (split < 1) throw new InvalidArgumentError('Write name=value.');
  return { ...before, [text.slice(0, split)]: text.slice(split + 1) };
}

async function create(session: Session, options: Options): Promise<0> {
  const key = parseIdempotencyKey(options.idempotencyKey === undefined ? [] : [options.idempotencyKey]);
  if (key.kind === 'missing') throw new CommandFailure(2, WHY_A_KEY);
  if (key.kind === 'invalid') {
    throw new CommandFailure(2, 'An idempotency key is 1 to 255 visible ASCII characters without spaces.');
  }
  const executeAt = executeAtOf(options, wallMs());
  if (executeAt === null) throw new CommandFailure(2, 'Give either --execute-at or --in, and not both.');
  const answer = await callApi<Payment>(apiTarget(session.terminal, options, 'client'), {
    method: 'POST',
    path: '/v1/payments',
    headers: { 'idempotency-key': key.key },
    body: bodyOf(options, executeAt),
  }).catch((error: unknown) => {
    // Counted from another moment, --in would be another request under the same key.
    if (!(error instanceof CommandFailure) || error.exitCode !== 2 || options.in === undefined) throw error;
    throw new CommandFailure(2, `${error.message} Give --execute-at ${executeAt} instead of --in then.`);
  });
  const replayed = answer.headers.get('idempotency-replayed') === 'true';
  const says = replayed
    ? 'This key has its payment already; nothing new was scheduled. It is now:'
    : 'Scheduled.';
  printPayment(session, options, { payment: answer.body, says });
  return 0;
}

/** Members that were not given stay absent: a written default would be another request. */
function bodyOf(options: Options, executeAt: string): object {
  return {
    amount: options.amount,
    currency: options.currency,
    destination: options.destination,
    execute_at: executeAt,
    not_after: options.notAfter,
    reference: options.reference,
    description: options.description,
    metadata: options.metadata,
    provider: options.provider,
  };
}
