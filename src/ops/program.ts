import { Command, CommanderError } from 'commander';
import { addApprove } from './approve.js';
import { addAudit } from './audit.js';
import { addCancel } from './cancel.js';
import type { Session } from './command.js';
import { addCreate } from './create.js';
import { addDoctor } from './doctor.js';
import { addEncryption } from './encryption.js';
import { addEscalate } from './escalate.js';
import { addGet } from './get.js';
import { addHistory } from './history.js';
import { addHold } from './hold.js';
import { addInvariants } from './invariants.js';
import { addKeys } from './keys.js';
import { addLanes } from './lanes.js';
import { addLimits } from './limits.js';
import { addList } from './list.js';
import { addMigrate } from './migrate.js';
import { addPeople } from './people.js';
import { addReconcile } from './reconcile.js';
import { addRelease } from './release.js';
import { addReschedule } from './reschedule.js';
import { addResolve } from './resolve.js';
import { addReview } from './review.js';
import { addSeedLocal } from './seed-local.js';
import { addToken } from './token.js';
import { addWebhooks } from './webhooks.js';
import type { ExitCode, Terminal } from './terminal.js';

const ABOUT = [
  'Schedules payments, looks at them, and operates the service.',
  '',
  'Commands on payments call the HTTP API with your own key: --api-url and --api-key-file, else PAYMENTS_API_URL and ' +
    'PAYMENTS_API_KEY, else the local stack that npm start runs. Commands on the service read their settings from ' +
    'the environment (.env.example), else from that stack.',
  'Exit codes: 0 done, 1 refused or failed, 2 wrong usage or could not be asked.',
].join('\n');

/** The commands in the order of the help: a payment's life first, then the service. */
const COMMANDS = [
  addCreate,
  addGet,
  addList,
  addHistory,
  addCancel,
  addReschedule,
  addHold,
  addRelease,
  addEscalate,
  addReview,
  addResolve,
  addApprove,
  addLanes,
  addWebhooks,
  addReconcile,
  addInvariants,
  addAudit,
  addKeys,
  addPeople,
  addLimits,
  addDoctor,
  addEncryption,
  addMigrate,
  addSeedLocal,
  addToken,
];

/**
 * Runs one command to its end.
 * @param args what follows the program's name.
 * @returns the exit code. Throws nothing: an unexpected fault is printed as a sentence and is 2.
 */
export async function runPayments(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const session: Session = { terminal, exitCode: 0 };
  const program = new Command('payments')
    .description(ABOUT)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    })
    .showHelpAfterError('(add --help for the options and an example)');
  for (const add of COMMANDS) add(program, session);
  try {
    await program.parseAsync([...args], { from: 'user' });
    return session.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    terminal.err(
      `The command could not be carried out: ${error instanceof Error ? error.message : 'unknown'}`,
    );
    return 2;
  }
}
