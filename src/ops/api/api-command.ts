import { InvalidArgumentError, type Command } from 'commander';
import { isPaymentId } from '../../domain/payment-id.js';
import { act, addCommand, type CommandText, type CommonOptions, type Session } from '../command.js';
import type { ExitCode } from '../terminal.js';
import { callApi } from './api-client.js';
import { apiTarget, type ApiOptions, type ApiTarget, type LocalKey } from './api-target.js';
import { paymentTable, type Payment } from './payment-table.js';

export interface ApiCommandOptions extends ApiOptions, CommonOptions {}

/** A command that calls the API: `--api-url`, `--api-key-file` and `--json`. */
export function addApiCommand(program: Command, of: CommandText): Command {
  return addCommand(program, of)
    .option('--api-url <url>', 'the API to ask; absent: PAYMENTS_API_URL, else the local stack')
    .option(
      '--api-key-file <path>',
      'the file that holds your key; absent: PAYMENTS_API_KEY or PAYMENTS_API_KEY_FILE',
    );
}

/** @throws InvalidArgumentError for a text that is no payment id. */
export function paymentIdArgument(text: string): string {
  if (isPaymentId(text)) return text;
  throw new InvalidArgumentError('A payment id is pay_ and 32 characters.');
}

/** The version that the caller saw, as the entity tag. */
export function versionArgument(text: string): string {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return `"v${text}"`;
  throw new InvalidArgumentError('A version is a whole number from 1.');
}

/** Prints a payment: as the API's JSON, or as a table under a sentence. */
export function printPayment(
  session: Session,
  options: CommonOptions,
  of: { readonly payment: Payment; readonly says: string },
): ExitCode {
  if (options.json) session.terminal.out(JSON.stringify(of.payment));
  else session.terminal.out(`${of.says}\n${paymentTable(of.payment)}`);
  return 0;
}

export interface PaymentCommand {
  /** Also the last part of the route. */
  readonly name: 'cancel' | 'hold' | 'release' | 'escalate';
  readonly summary: string;
  readonly localKey: LocalKey;
}

/** A command that asks for one move of one payment and sends nothing but its id. */
export function addPaymentCommand(program: Command, session: Session, of: PaymentCommand): void {
  const command = addApiCommand(program, {
    name: of.name,
    summary: of.summary,
    example: `${of.name} pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk`,
  })
    .argument('<payment>', 'id of the payment', paymentIdArgument)
    .option('--if-version <n>', 'refuse when the payment has changed since this version', versionArgument);
  act(command, session, async (id: string, options: ApiCommandOptions & { readonly ifVersion?: string }) => {
    const target = apiTarget(session.terminal, options, of.localKey);
    const payment = await movePayment(target, { id, operation: of.name, ifVersion: options.ifVersion });
    return printPayment(session, options, { payment, says: `${payment.id} is ${payment.state}.` });
  });
}

/** POSTs one operation on one payment. */
export async function movePayment(
  target: ApiTarget,
  of: {
    readonly id: string;
    readonly operation: 'cancel' | 'hold' | 'release' | 'escalate' | 'reschedule';
    readonly ifVersion?: string | undefined;
    readonly body?: object;
  },
): Promise<Payment> {
  const answer = await callApi<Payment>(target, {
    method: 'POST',
    path: `/v1/payments/${of.id}/${of.operation}`,
    headers: of.ifVersion === undefined ? {} : { 'if-match': of.ifVersion },
    ...(of.body ? { body: of.body } : {}),
  });
  return answer.body;
}
