import type { Command } from 'commander';
import { callApi } from './api/api-client.js';
import { addApiCommand, paymentIdArgument } from './api/api-command.js';
import { apiTarget } from './api/api-target.js';
import { moneyText } from './api/payment-table.js';
import { addPersonOption, personKey, type PersonOptions } from './api/person-option.js';
import { act, type Session } from './command.js';
import { factsTable, rowsTable } from './table.js';

const USUAL = 'operator-1';

interface Review {
  readonly payment_id: string;
  readonly reason: string;
  readonly state: string;
  readonly version: number;
  readonly owner: string | null;
  readonly opened_at: string;
  readonly due_at: string;
  readonly age_seconds: number;
  readonly overdue: boolean;
  readonly amount_at_risk: number;
  readonly currency: string;
  readonly provider: string;
  readonly open_resolution: string | null;
  readonly closed_by: string | null;
  readonly close_reason: string | null;
}

interface Detail extends Review {
  readonly evidence: readonly Readonly<Record<string, unknown>>[];
  readonly resolutions: readonly Readonly<Record<string, unknown>>[];
}

interface Page {
  readonly data: readonly Review[];
  readonly next_cursor: string | null;
}

/** `payments review`: what people have to look into. */
export function addReview(program: Command, session: Session): void {
  const review = program
    .command('review')
    .description('Look at what people have to decide, and take it.')
    .addHelpText('after', '\nExample:\n  $ payments review list');
  addReviewList(review, session);
  addReviewShow(review, session);
  addReviewStep(review, session, {
    name: 'own',
    summary: 'Take a review: you are its owner, whoever was before.',
    says: 'You own it.',
  });
  addReviewClose(review, session);
}

function addReviewList(review: Command, session: Session): void {
  const command = addApiCommand(review, {
    name: 'list',
    summary: 'List open reviews, oldest first, a page at a time.',
    example: 'review list --limit 50',
  })
    .option('--limit <n>', 'reviews per page, 1 to 100')
    .option('--cursor <cursor>', 'where the page before ended');
  addPersonOption(command, USUAL);
  act(
    command,
    session,
    async (options: PersonOptions & { readonly limit?: string; readonly cursor?: string }) => {
      const target = apiTarget(session.terminal, options, personKey(options, USUAL));
      const query = { limit: options.limit, cursor: options.cursor };
      const { body } = await callApi<Page>(target, { method: 'GET', path: '/v1/reviews', query });
      session.terminal.out(options.json ? JSON.stringify(body) : pageText(body));
      return 0;
    },
  );
}

function addReviewShow(review: Command, session: Session): void {
  const command = addApiCommand(review, {
    name: 'show',
    summary: 'Show the review of a payment with its evidence and every proposal.',
    example: 'review show pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
  }).argument('<payment>', 'id of the payment', paymentIdArgument);
  addPersonOption(command, USUAL);
  act(command, session, async (id: string, options: PersonOptions) => {
    const target = apiTarget(session.terminal, options, personKey(options, USUAL));
    const { body } = await callApi<Detail>(target, { method: 'GET', path: `/v1/reviews/${id}` });
    session.terminal.out(options.json ? JSON.stringify(body) : detailText(body));
    return 0;
  });
}

interface Step {
  readonly name: 'own' | 'close';
  readonly summary: string;
  readonly says: string;
}

function addReviewStep(review: Command, session: Session, step: Step): Command {
  const command = addApiCommand(review, {
    name: step.name,
    summary: step.summary,
    example: `review ${step.name} pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk${step.name === 'close' ? ' --reason settled_with_provider' : ''}`,
  }).argument('<payment>', 'id of the payment', paymentIdArgument);
  addPersonOption(command, USUAL);
  act(command, session, async (id: string, options: PersonOptions & { readonly reason?: string }) => {
    const target = apiTarget(session.terminal, options, personKey(options, USUAL));
    const { body } = await callApi<Detail>(target, {
      method: 'POST',
      path: `/v1/reviews/${id}/${step.name}`,
      ...(options.reason === undefined ? {} : { body: { reason_code: options.reason } }),
    });
    session.terminal.out(options.json ? JSON.stringify(body) : `${step.says}\n${detailText(body)}`);
    return 0;
  });
  return command;
}

function addReviewClose(review: Command, session: Session): void {
  addReviewStep(review, session, {
    name: 'close',
    summary: 'Close the review of a final payment: a contradiction that was looked into.',
    says: 'Closed.',
  }).requiredOption(
    '--reason <code>',
    'news_was_wrong, settled_with_provider, settled_with_client or duplicate_news',
  );
}

const money = (review: Review): string =>
  moneyText({ amount: review.amount_at_risk, currency: review.currency });

function pageText(page: Page): string {
  if (page.data.length === 0) return 'Nothing waits for people.';
  const table = rowsTable(
    ['payment', 'reason', 'at risk', 'age', 'due', 'owner', 'proposal'],
    page.data.map((r) => [
      r.payment_id,
      r.reason,
      money(r),
      ageText(r.age_seconds),
      r.overdue ? `overdue since ${r.due_at}` : r.due_at,
      r.owner ?? 'nobody',
      r.open_resolution ?? '',
    ]),
  );
  return page.next_cursor === null ? table : `${table}\nMore: --cursor ${page.next_cursor}`;
}

function ageText(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : '';

function detailText(review: Detail): string {
  const facts = factsTable([
    ['payment', review.payment_id],
    ['state', `${review.state}, version ${review.version}`],
    ['reason', review.reason],
    ['at risk', money(review)],
    ['provider', review.provider],
    ['opened', `${review.opened_at} (${ageText(review.age_seconds)})`],
    ['due', review.overdue ? `${review.due_at}, overdue` : review.due_at],
    ['owner', review.owner ?? 'nobody'],
    ['closed', review.closed_by === null ? null : `${review.close_reason} by ${review.closed_by}`],
  ]);
  const evidence = rowsTable(
    ['evidence', 'at', 'source', 'says', 'status', 'amount', 'code'],
    review.evidence.map((e) => [
      text(e['id']),
      text(e['at']),
      text(e['source']),
      text(e['evidence']),
      text(e['status']),
      [text(e['observed_amount']), text(e['observed_currency'])].join(' ').trim(),
      text(e['code']),
    ]),
  );
  if (review.resolutions.length === 0) return `${facts}\n${evidence}`;
  const proposals = rowsTable(
    ['proposal', 'outcome', 'reason', 'is', 'proposed by', 'approved by'],
    review.resolutions.map((r) =>
      ['id', 'outcome', 'reason_code', 'status', 'proposed_by', 'approved_by'].map((name) => text(r[name])),
    ),
  );
  return `${facts}\n${evidence}\n${proposals}`;
}
