import { createReadStream, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { Listr } from 'listr2';
import {
  publicKeysOf,
  readPublicKeys,
  writePublicKeys,
  type AnchorPublicKeys,
} from '../audit/anchor-keys.js';
import type { Broken } from '../audit/anchor-check.js';
import { exportHistory, verifyExport, type HistoryExport } from '../audit/history-export.js';
import { verifyHistory, type VerifyOptions, type VerifyReport } from '../audit/verify.js';
import { readKeysFile } from '../config/key-file.js';
import { isPaymentId } from '../domain/payment-id.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { databaseUrl, serviceEnvironment } from './environment.js';
import { rowsTable } from './table.js';
import { CommandFailure, type ExitCode, type Terminal } from './terminal.js';

interface ScopeOptions extends CommonOptions {
  readonly since?: string;
  readonly payment?: string;
}
interface KeyOptions {
  readonly publicKeys?: string;
}
interface VerifyCommandOptions extends ScopeOptions, KeyOptions {
  readonly anchors?: string;
}

const APPLICATION = 'payments-audit';
/** Faults shown to a person; `--json` shows up to 100. */
const FAULTS_SHOWN = 20;
const BAR_WIDTH = 30;

/** `payments audit`: whether the history is what it was, and proofs of it for others. */
export function addAudit(program: Command, session: Session): void {
  const audit = program
    .command('audit')
    .description('Verify that nobody rewrote the history, and prove what happened to a payment.')
    .addHelpText(
      'after',
      '\nEach of them takes --json.\n\nExample:\n  $ payments audit verify --since 2026-11-01',
    );
  addVerify(audit, session);
  addExport(audit, session);
  addVerifyExport(audit, session);
  addPublicKeys(audit, session);
}

function addVerify(audit: Command, session: Session): void {
  const command = addCommand(audit, {
    name: 'verify',
    summary:
      'Recompute every hash chain and anchor, and compare the copies. Exit code 0: whole, 1: broken, 2: could not check.',
    example: 'audit verify --anchors /mnt/anchors --public-keys anchor-keys.json',
  })
    .option('--since <time>', 'only payments that changed, and anchors made, since then')
    .option('--payment <id>', 'only this payment')
    .option('--anchors <folder>', 'copies of the anchors; default: PAYMENTS_ANCHOR_DIR')
    .option(
      '--public-keys <file>',
      'JSON of key id to public key; default: PAYMENTS_ANCHOR_PUBLIC_KEYS_FILE',
    );
  act(command, session, async (options: VerifyCommandOptions) => {
    const { terminal } = session;
    const report = await verifyWithProgress(terminal, options);
    terminal.out(options.json ? JSON.stringify(asJson(report)) : asText(report));
    return report.brokenCount === 0 ? 0 : 1;
  });
}

async function verifyWithProgress(terminal: Terminal, options: VerifyCommandOptions): Promise<VerifyReport> {
  const folder = options.anchors ?? serviceEnvironment(terminal)['PAYMENTS_ANCHOR_DIR'];
  const verify: VerifyOptions = {
    ...scopeOf(terminal, options),
    publicKeys: publicKeys(terminal, options),
    copies: folder === undefined ? null : resolve(terminal.folder, folder),
  };
  let report: VerifyReport | null = null;
  const tasks = new Listr(
    [
      {
        title: 'Verify the history',
        task: async (_context, task) => {
          const progress = (done: number, total: number | null): void => {
            task.output = bar(done, total);
          };
          report = await verifyHistory({ ...verify, progress });
        },
      },
    ],
    { renderer: terminal.isInteractive && !options.json ? 'default' : 'silent' },
  );
  await couldNotCheck(() => tasks.run());
  if (!report) throw new Error('The verification ended without a report.');
  return report;
}

/** Whatever stops a check before its verdict is no verdict: exit code 2. */
async function couldNotCheck<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message } = error as Error;
    throw new CommandFailure(2, `The history could not be checked: ${message}`);
  }
}

function bar(done: number, total: number | null): string {
  const count = `${done.toLocaleString('en-US')} transitions`;
  if (total === null) return count;
  const share = Math.min(1, done / total);
  const filled = Math.round(share * BAR_WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] ${count} of about ${total.toLocaleString('en-US')}`;
}

/** The scope and the log-in. @throws CommandFailure when a time or an id is none. */
function scopeOf(
  terminal: Terminal,
  { since, payment }: ScopeOptions,
): Pick<VerifyOptions, 'url' | 'applicationName' | 'since' | 'paymentId'> {
  if (since !== undefined && Number.isNaN(Date.parse(since))) {
    throw new CommandFailure(2, '--since takes a time of ISO 8601, such as 2026-11-01T00:00:00Z.');
  }
  if (payment !== undefined && !isPaymentId(payment)) {
    throw new CommandFailure(
      2,
      '--payment takes the id of a payment, such as pay_ and 32 letters and digits.',
    );
  }
  return {
    url: databaseUrl(terminal, 'PAYMENTS_AUDITOR_DATABASE_URL'),
    applicationName: APPLICATION,
    since: since === undefined ? null : new Date(since).toISOString(),
    paymentId: payment ?? null,
  };
}

/** Whom to trust: a file of public keys, or on hosts that hold it the key file. */
function publicKeys(terminal: Terminal, options: KeyOptions): AnchorPublicKeys {
  const env = serviceEnvironment(terminal);
  const file = options.publicKeys ?? env['PAYMENTS_ANCHOR_PUBLIC_KEYS_FILE'];
  try {
    if (file !== undefined)
      return readPublicKeys(JSON.parse(readFileSync(resolve(terminal.folder, file), 'utf8')));
    const keysFile = env['PAYMENTS_KEYS_FILE'];
    const anchor = keysFile === undefined ? undefined : readKeysFile(keysFile, 'development').anchor;
    if (anchor) return publicKeysOf(anchor);
  } catch (error) {
    throw new CommandFailure(2, `The public keys of the anchors cannot be read: ${(error as Error).message}`);
  }
  throw new CommandFailure(2, 'Whose anchors are to be trusted? Name their public keys with --public-keys.');
}

function asText(report: VerifyReport): string {
  const { transitions, payments, anchors, copiedAnchors, newestAnchorAt } = report;
  const seen = `${transitions} transitions of ${payments} payments, ${anchors} anchors, ${copiedAnchors} copies`;
  const newest =
    newestAnchorAt === null ? 'There is no anchor yet' : `The newest anchor is of ${newestAnchorAt}`;
  if (report.brokenCount === 0) return `The history is whole: ${seen}. ${newest}.`;
  const rows = report.broken.slice(0, FAULTS_SHOWN).map((broken) => [whereOf(broken), broken.fault]);
  return [
    `The history is BROKEN in ${report.brokenCount} places; ${seen}. ${newest}.`,
    rowsTable(['first bad link', 'what differs'], rows),
    'Change nothing, and see docs/runbooks/chain-broken.md.',
  ].join('\n');
}

function whereOf(broken: Broken): string {
  if (!('paymentId' in broken)) return `anchor ${broken.anchorNo}`;
  const anchor = broken.anchorNo === undefined ? '' : ` (anchor ${broken.anchorNo})`;
  return `${broken.paymentId} transition ${broken.seq}${anchor}`;
}

function asJson(report: VerifyReport): object {
  return {
    ok: report.brokenCount === 0,
    transitions: report.transitions,
    payments: report.payments,
    anchors: report.anchors,
    copied_anchors: report.copiedAnchors,
    newest_anchor_at: report.newestAnchorAt,
    broken_count: report.brokenCount,
    broken: report.broken.map((broken) => ({
      ...('paymentId' in broken ? { payment_id: broken.paymentId, seq: broken.seq } : {}),
      anchor_no: broken.anchorNo ?? null,
      fault: broken.fault,
    })),
  };
}

function addExport(audit: Command, session: Session): void {
  const command = addCommand(audit, {
    name: 'export',
    summary:
      'Print histories with the proof that a signed anchor covers them, one line of JSON for each payment.',
    example: 'audit export --payment pay_… > history.jsonl',
  })
    .option('--since <time>', 'every payment that changed since then')
    .option('--payment <id>', 'this payment');
  act(command, session, async (options: ScopeOptions) => {
    const { terminal } = session;
    if (options.since === undefined && options.payment === undefined) {
      throw new CommandFailure(2, 'Name what to export: --payment or --since.');
    }
    let unanchored = 0;
    const count = await couldNotCheck(() =>
      exportHistory(scopeOf(terminal, options), (history) => {
        if (history.proof === null) unanchored++;
        terminal.out(JSON.stringify(history));
      }),
    );
    if (count === 0) throw new CommandFailure(1, 'There is no such payment.');
    if (unanchored > 0) {
      terminal.err(
        `${unanchored} of ${count} are in no anchor yet and prove nothing: export them in a minute.`,
      );
      return 1;
    }
    return 0;
  });
}

function addVerifyExport(audit: Command, session: Session): void {
  const command = addCommand(audit, {
    name: 'verify-export',
    summary:
      'Verify an exported file by public keys alone. Exit code 0: proven, 1: broken, 2: could not check.',
    example: 'audit verify-export history.jsonl --public-keys anchor-keys.json',
  })
    .argument('<file>', 'what payments audit export printed')
    .option(
      '--public-keys <file>',
      'JSON of key id to public key; default: PAYMENTS_ANCHOR_PUBLIC_KEYS_FILE',
    );
  act(command, session, async (file: string, options: CommonOptions & KeyOptions) => {
    const { terminal } = session;
    const keys = publicKeys(terminal, options);
    const verdicts = await couldNotCheck(() => verifyFile(resolve(terminal.folder, file), keys));
    if (verdicts.length === 0) throw new CommandFailure(2, 'The file holds no history.');
    if (options.json) terminal.out(JSON.stringify({ payments: verdicts }));
    else for (const verdict of verdicts) terminal.out(verdictText(verdict));
    return verdicts.every(({ kind }) => kind === 'proven') ? 0 : 1;
  });
}

type FileVerdict = { readonly payment_id: string } & ReturnType<typeof verifyExport>;

async function verifyFile(file: string, keys: AnchorPublicKeys): Promise<readonly FileVerdict[]> {
  const verdicts: FileVerdict[] = [];
  const input = createReadStream(file, { encoding: 'utf8' });
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (line.trim() === '') continue;
    const history = JSON.parse(line) as HistoryExport;
    if (history.format !== 'payment-history/v1') throw new Error('this is no exported history of version 1.');
    verdicts.push({ payment_id: history.payment_id, ...verifyExport(history, keys) });
  }
  return verdicts;
}

function verdictText(verdict: FileVerdict): string {
  if (verdict.kind === 'proven') {
    const { version, anchorNo, anchoredAt } = verdict;
    return `${verdict.payment_id}: proven up to version ${version} by anchor ${anchorNo} of ${anchoredAt}`;
  }
  const at = verdict.seq === null ? '' : ` at transition ${verdict.seq}`;
  return `${verdict.payment_id}: BROKEN${at}: ${verdict.fault}`;
}

function addPublicKeys(audit: Command, session: Session): void {
  const command = addCommand(audit, {
    name: 'public-keys',
    summary: 'Print the public keys of the anchors as JSON, for those who verify elsewhere.',
    example: 'audit public-keys > anchor-keys.json',
  });
  act(command, session, async () => {
    session.terminal.out(JSON.stringify(writePublicKeys(publicKeys(session.terminal, {}))));
    return Promise.resolve<ExitCode>(0);
  });
}
