import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { Listr } from 'listr2';
import type { ImportProgress, ImportResult } from '../reconciliation/settlement-import.js';
import { BUCKETS, CLEAN_BUCKETS, UnusableFile, type Bucket } from '../reconciliation/settlement-line.js';
import { sizeOf } from '../reconciliation/settlement-source.js';
import { act, addCommand, type CommonOptions, type Session } from './command.js';
import { databaseUrl, isUnreachable, serviceEnvironment } from './environment.js';
import { rowsTable } from './table.js';
import { CommandFailure, type ExitCode, type Terminal } from './terminal.js';

interface Options extends CommonOptions {
  readonly file: string;
  readonly provider?: string;
  readonly format: 'csv' | 'camt053';
}

/** Rows of trouble shown to a person; `--json` shows up to 1,000. */
const TROUBLE_SHOWN = 50;
const BAR_CELLS = 30;
/** Fast enough to look alive, slow enough to cost nothing (ms). */
const BAR_EVERY_MS = 200;

/** `payments reconcile`: imports a settlement file; 0 clean, 1 discrepancies, 2 could not. */
export function addReconcile(program: Command, session: Session): void {
  const command = addCommand(program, {
    name: 'reconcile',
    summary:
      "Import a provider's settlement file and compare it with the payments. Reading a file again changes nothing. " +
      'Exit code 0: everything matches, 1: discrepancies, 2: could not be reconciled.',
    example: 'reconcile --file activity-2027-03.csv --provider simulated',
  })
    .requiredOption('--file <path>', 'the settlement file')
    .option('--provider <name>', 'whose file it is (default: PAYMENTS_PROVIDER, else simulated)')
    .addOption(
      new Option('--format <format>', 'itemized balance activity, or a bank statement')
        .choices(['csv', 'camt053'])
        .default('csv'),
    );
  act(command, session, async (options: Options) => {
    const result = await reconcile(session.terminal, options);
    session.terminal.out(options.json ? JSON.stringify(asJson(result)) : asText(result));
    return verdictOf(result);
  });
}

async function reconcile(terminal: Terminal, options: Options): Promise<ImportResult> {
  const url = databaseUrl(terminal);
  const provider = options.provider ?? serviceEnvironment(terminal)['PAYMENTS_PROVIDER'] ?? 'simulated';
  const path = resolve(terminal.folder, options.file);
  // The readers and the pool are loaded only by the command that needs them.
  const { importSettlementFile } = await import('../reconciliation/settlement-import.js');
  try {
    const size = await sizeOf(path);
    let result: ImportResult | null = null;
    const run = async (onProgress: (progress: ImportProgress) => void): Promise<void> => {
      const request = { path, provider, format: options.format, onProgress };
      result = await importSettlementFile(url, request, 'payments-ops');
    };
    await withProgress(terminal.isInteractive && !options.json, size, run);
    if (result === null) throw new Error('the import ended without a result');
    return result;
  } catch (error) {
    throw failureOf(error);
  }
}

async function withProgress(
  isShown: boolean,
  size: number,
  run: (onProgress: (progress: ImportProgress) => void) => Promise<void>,
): Promise<void> {
  if (!isShown) return run(() => undefined);
  const startedAt = performance.now();
  const tasks = [
    {
      title: 'Reconcile',
      task: async (_: unknown, task: { title: string }): Promise<void> => {
        let shownAt = 0;
        await run((progress) => {
          const now = performance.now();
          if (now - shownAt < BAR_EVERY_MS) return;
          shownAt = now;
          task.title = progressLine(progress, size, (now - startedAt) / 1_000);
        });
      },
    },
  ];
  await new Listr(tasks, { renderer: 'default' }).run();
}

/** One line of progress: a bar while the size of the work is known, then counts. */
export function progressLine({ phase, bytes, rows }: ImportProgress, size: number, seconds: number): string {
  if (phase === 'settle') return `Settling by lines: ${grouped(rows)}`;
  if (phase === 'missing') return `Looking for payments that no line tells of: ${grouped(rows)}`;
  const share = size === 0 ? 1 : Math.min(1, bytes / size);
  const full = Math.round(share * BAR_CELLS);
  const bar = `${'#'.repeat(full)}${'-'.repeat(BAR_CELLS - full)}`;
  const what = phase === 'identify' ? 'Identifying' : 'Reading';
  const pace = phase === 'read' && seconds > 0 ? `, ${grouped(Math.round(rows / seconds))}/s` : '';
  return `${what} [${bar}] ${Math.floor(share * 100)} %  ${grouped(rows)} rows${pace}`;
}

const grouped = (value: number): string => value.toLocaleString('en-US');

/** A broken file, or a database that cannot be asked: nothing is known, so it is never "clean". */
function failureOf(error: unknown): unknown {
  if (error instanceof UnusableFile) return new CommandFailure(2, error.message);
  if (error instanceof Error && error.name === 'PortionLost') return new CommandFailure(2, error.message);
  const isFault =
    error instanceof Error && /^(StorageUnavailable|OutcomeUnknown|LockTimeout)$/.test(error.name);
  if (isFault || isUnreachable(error)) {
    return new CommandFailure(
      2,
      'Postgres could not be asked or did not answer in time. What was imported stays; start the command again.',
    );
  }
  return error;
}

function discrepancies({ report }: ImportResult): number {
  return BUCKETS.reduce((sum, b) => sum + (CLEAN_BUCKETS.includes(b) ? 0 : report.counts[b]), 0);
}

function verdictOf(result: ImportResult): ExitCode {
  return discrepancies(result) > 0 || result.followedUp.failed > 0 ? 1 : 0;
}

const WORDS: Readonly<Record<Bucket, string>> = {
  matched: 'matched',
  late: 'late: booked after the booking lag',
  returned: 'reversed after success',
  other: 'no payment (fees, adjustments)',
  amount_differs: 'amount differs',
  currency_differs: 'currency differs',
  fee_differs: 'fee differs: net is not gross less fee',
  sign_flipped: 'sign flipped',
  unexpected_at_provider: 'UNEXPECTED AT PROVIDER: possible double payment',
  missing_at_provider: 'missing at provider',
  duplicate: 'duplicate row',
  unreadable: 'unreadable row',
};

function asText(result: ImportResult): string {
  const { report, followedUp } = result;
  const counts = BUCKETS.map((bucket) => [WORDS[bucket], grouped(report.counts[bucket])]);
  const parts = [
    rowsTable(
      ['bucket', 'rows'],
      [
        ...counts,
        ['known from an earlier file', grouped(report.known)],
        ['rows of the file', grouped(report.rows)],
      ],
    ),
  ];
  const shown = report.trouble.slice(0, TROUBLE_SHOWN);
  if (shown.length > 0) {
    const rows = shown.map((row) => [
      row.rowNo === null ? '' : String(row.rowNo),
      row.bucket,
      [row.reason, ...row.suggestions.map((id) => `perhaps ${id}`)]
        .filter((each) => each !== null)
        .join('\n'),
      row.txnId ?? '',
      row.paymentId ?? '',
    ]);
    parts.push(rowsTable(['row', 'bucket', 'reason', 'provider txn id', 'payment'], rows));
    const more = report.trouble.length - shown.length + report.troubleLeftOut;
    if (more > 0) parts.push(`${grouped(more)} more; --json shows up to 1,000.`);
  }
  parts.push(sentences(result, followedUp));
  return parts.join('\n');
}

function sentences(result: ImportResult, done: ImportResult['followedUp']): string {
  const wrong = discrepancies(result);
  return [
    ...(result.wasKnown ? ['This file was imported before: nothing was read again.'] : []),
    ...(done.settled > 0 ? [`${grouped(done.settled)} payments became succeeded by their line.`] : []),
    ...(done.returned > 0 ? [`${grouped(done.returned)} payments became returned.`] : []),
    ...(done.waiting > 0
      ? [`${grouped(done.waiting)} lines wait until their payment has a final state.`]
      : []),
    ...(done.failed > 0
      ? [`${grouped(done.failed)} lines could not be applied; start the command again.`]
      : []),
    wrong === 0 ? 'No discrepancies.' : `${grouped(wrong)} discrepancies.`,
  ].join('\n');
}

function asJson({ report, wasKnown, followedUp }: ImportResult): object {
  return {
    file_id: report.fileId.toString(),
    provider: report.provider,
    imported_before: wasKnown,
    rows: report.rows,
    rows_known: report.known,
    cut_off: report.cutOff,
    buckets: report.counts,
    payments: { settled: followedUp.settled, returned: followedUp.returned },
    lines: {
      contradicted: followedUp.contradicted,
      waiting: followedUp.waiting,
      failed: followedUp.failed,
    },
    trouble: report.trouble.map((row) => ({
      row: row.rowNo,
      bucket: row.bucket,
      reason: row.reason,
      txn_id: row.txnId,
      payment_id: row.paymentId,
      suggestions: row.suggestions,
    })),
    trouble_left_out: report.troubleLeftOut,
  };
}
