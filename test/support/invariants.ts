import { createHash } from 'node:crypto';

/**
 * The judge of the tests: what must hold for stored payments, written from the words of the
 * design and apart from the product's own checks, so that one mistake cannot hide in both. It
 * loads every row in one statement (one snapshot) and reasons in TypeScript.
 */

export interface Breach {
  /** Number of the invariant. */
  readonly invariant: number;
  readonly paymentId: string;
  readonly what: string;
}

/** Times are whole microseconds since 1970 on the database's clock, as text; null: never. */
type Micros = string | null;

interface PaymentRow {
  id: string;
  tenant: string;
  state: string;
  version: number;
  amount: string;
  currency: string;
  reference: string | null;
  lane: string;
  provider: string;
  execute: Micros;
  started: Micros;
  next: Micros;
  wake: Micros;
}
interface TransitionRow {
  payment: string;
  seq: number;
  tenant: string;
  from: string | null;
  to: string;
  cause: string;
  actor: string;
  at: Micros;
  at_text: string;
  detail: string;
  hash: string;
}
interface SubmissionRow {
  payment: string;
  generation: number;
  key: string;
  proof: string | null;
}
interface AttemptRow {
  payment: string;
  owner: string | null;
  opened: Micros;
  called: Micros;
  closed: Micros;
  evidence: string | null;
}
interface EvidenceRow {
  payment: string;
  source: string;
  kind: string;
  status: string | null;
  amount: string | null;
  currency: string | null;
}
interface LineRow {
  name: string;
  payment: string | null;
  kind: string;
  bucket: string;
}
interface ReportRow {
  provider: string;
  since: Micros;
  until: Micros;
}
interface CaseRow {
  payment: string;
  owner: string | null;
  due: Micros;
}
interface ResolutionRow {
  payment: string;
  version: number;
  proposer: string;
  approver: string | null;
}

interface World {
  now: string;
  hold: boolean;
  payments: PaymentRow[];
  transitions: TransitionRow[];
  submissions: SubmissionRow[];
  attempts: AttemptRow[];
  evidence: EvidenceRow[];
  cases: CaseRow[];
  lines: LineRow[];
  reports: ReportRow[];
  resolutions: ResolutionRow[];
  workers: { id: string; until: Micros }[];
  outbox: { payment: string; kind: string; created: Micros; due: Micros }[];
  paused: string[];
  strict: string[];
}

const micros = (column: string): string => `(extract(epoch FROM ${column}) * 1000000)::bigint::text`;
const rows = (text: string): string => `coalesce((SELECT json_agg(r) FROM (${text}) r), '[]'::json)`;

const LOAD = `SELECT json_build_object(
  'now', ${micros('clock_timestamp()')},
  'hold', EXISTS (SELECT FROM setting WHERE name = 'recovery_hold' AND value = 'on'),
  'payments', ${rows(`SELECT id, tenant_id AS tenant, state, version, amount::text, currency, reference, lane,
     provider,
     ${micros('execute_at')} AS execute, ${micros('submission_started_at')} AS started,
     ${micros('next_action_at')} AS next, ${micros('wake_after')} AS wake FROM payment`)},
  'transitions', ${rows(`SELECT payment_id AS payment, seq, tenant_id AS tenant, from_state AS "from",
     to_state AS "to", cause, actor, ${micros('at')} AS at,
     to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at_text, detail,
     encode(hash, 'hex') AS hash FROM payment_transition ORDER BY payment_id, seq`)},
  'submissions', ${rows(`SELECT payment_id AS payment, generation, provider_key AS key, proof FROM submission`)},
  'attempts', ${rows(`SELECT payment_id AS payment, owner, ${micros('opened_at')} AS opened,
     ${micros('call_started_at')} AS called, ${micros('closed_at')} AS closed, evidence FROM submission_attempt`)},
  'evidence', ${rows(`SELECT payment_id AS payment, source, kind, status, observed_amount::text AS amount,
     observed_currency AS currency FROM evidence`)},
  'cases', ${rows(`SELECT payment_id AS payment, owner, ${micros('due_at')} AS due FROM review_case
     WHERE closed_at IS NULL`)},
  'resolutions', ${rows(`SELECT payment_id AS payment, payment_version AS version, proposed_by AS proposer,
     approved_by AS approver FROM resolution`)},
  'lines', ${rows(`SELECT provider || '/' || txn_id AS name, payment_id AS payment, kind, bucket FROM settlement_row`)},
  'reports', ${rows(`SELECT provider, ${micros('min(first_booked_at)')} AS since, ${micros('max(last_booked_at)')} AS until
     FROM settlement_file WHERE finished_at IS NOT NULL GROUP BY provider`)},
  'workers', ${rows(`SELECT id, ${micros('lease_expires_at')} AS until FROM worker`)},
  'outbox', ${rows(`SELECT payment_id AS payment, kind, ${micros('created_at')} AS created, ${micros('due_at')} AS due FROM outbox`)},
  'paused', coalesce((SELECT json_agg(lane) FROM lane
    WHERE paused OR wait_until IS NOT NULL OR breaker <> 'closed'), '[]'::json),
  'strict', coalesce((SELECT json_agg(id) FROM tenant WHERE unique_references), '[]'::json)) AS world`;

/** Every move that may exist, as the table of the design says it, written out by hand. */
const LEGAL = new Set(
  `-:scheduled:create
   scheduled:scheduled:reschedule
   scheduled:held:hold scheduled:held:prepare_failed scheduled:held:recovery
   held:scheduled:release
   scheduled:cancelled:cancel held:cancelled:cancel
   scheduled:expired:expire held:expired:expire
   scheduled:submitting:begin-submission
   submitting:submitted:record-outcome submitting:succeeded:record-outcome submitting:failed:record-outcome
   submitting:unknown:record-outcome submitting:submitting:resend
   unknown:submitted:record-outcome unknown:succeeded:record-outcome unknown:failed:record-outcome
   unknown:submitting:resend
   submitting:needs_review:escalate submitted:needs_review:escalate unknown:needs_review:escalate
   submitted:succeeded:record-outcome submitted:failed:record-outcome
   needs_review:succeeded:resolve needs_review:failed:resolve needs_review:submitted:resolve
   needs_review:submitting:resolve
   needs_review:submitted:record-outcome needs_review:succeeded:record-outcome needs_review:failed:record-outcome
   succeeded:returned:record-return
   scheduled:needs_review:recover held:needs_review:recover`.split(/\s+/),
);

/** Succeeded payments are in the provider's books two days after their start; every line has a payment. */
function judgeBooks(world: World, report: Report): void {
  const lag = 2n * 86_400n * SECOND;
  const told = new Set(world.lines.filter((line) => line.kind === 'payment').map((line) => line.payment));
  for (const line of world.lines) {
    if (line.bucket === 'unexpected_at_provider' && line.payment === null)
      report(18, line.name, 'no payment');
  }
  const reports = new Map(world.reports.map((row) => [row.provider, row]));
  for (const payment of world.payments) {
    const books = reports.get(payment.provider);
    if (!books?.since || !books.until || payment.state !== 'succeeded' || payment.started === null) continue;
    const end = at(books.until) < BigInt(world.now) ? at(books.until) : BigInt(world.now);
    const isCovered = at(payment.started) >= at(books.since) && at(payment.started) + lag < end;
    if (isCovered && !told.has(payment.id)) report(18, payment.id, 'in no settlement file');
  }
}

const SECOND = 1_000_000n;
const at = (time: Micros): bigint => BigInt(time ?? 0);

function group<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const list = groups.get(key(item));
    if (list) list.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

type Report = (invariant: number, paymentId: string, what: string) => void;

function judgeHistory(world: World, report: Report): void {
  const histories = group(world.transitions, (row) => row.payment);
  for (const payment of world.payments) {
    const history = histories.get(payment.id) ?? [];
    const last = history.at(-1);
    if (last?.to !== payment.state) report(5, payment.id, `head ${payment.state}, history ${last?.to}`);
    if (payment.version !== history.length) report(5, payment.id, 'version is not the number of transitions');
    if (history.some((row, i) => row.seq !== i + 1)) report(5, payment.id, 'gap in seq');
  }
  const decided = group(world.resolutions, (row) => row.payment);
  for (const [id, history] of histories)
    judgeChain(history, decided.get(id) ?? [], (n, what) => report(n, id, what));
}

function judgeChain(
  history: readonly TransitionRow[],
  decided: readonly ResolutionRow[],
  report: (invariant: number, what: string) => void,
): void {
  let previous: TransitionRow | undefined;
  for (const row of history) {
    const text = ['transition/v1', row.payment, row.seq, row.tenant, row.from ?? 'none', row.to, row.cause]
      .concat(row.actor, row.at_text, row.detail)
      .join('\n');
    const sum = createHash('sha256');
    if (previous) sum.update(Buffer.from(previous.hash, 'hex'));
    if (sum.update(text).digest('hex') !== row.hash) report(6, `hash of transition ${row.seq}`);
    if (!LEGAL.has(`${row.from ?? '-'}:${row.to}:${row.cause}`)) {
      report(15, `${row.from} to ${row.to} by ${row.cause}`);
    }
    if ((previous?.to ?? null) !== row.from) report(15, `transition ${row.seq} does not follow`);
    if (previous && isAfterEnd(previous.to, row.to)) report(16, `${row.to} after ${previous.to}`);
    if (previous && at(row.at) < at(previous.at)) report(19, `transition ${row.seq} is earlier`);
    if (row.cause === 'resolve' && !hasTwoPeople(row, decided)) report(17, `resolved by ${row.actor} alone`);
    previous = row;
  }
}

function isAfterEnd(before: string, next: string): boolean {
  if (before === 'succeeded') return next !== 'returned';
  return ['failed', 'cancelled', 'expired', 'returned'].includes(before);
}

/** The move names both, and so does what they decided about the version before it. */
function hasTwoPeople(row: TransitionRow, decided: readonly ResolutionRow[]): boolean {
  const { proposed_by: proposer } = JSON.parse(row.detail) as { proposed_by?: string };
  if (proposer === undefined || proposer === row.actor) return false;
  return decided.some(
    (each) => each.version === row.seq - 1 && each.proposer === proposer && each.approver === row.actor,
  );
}

function judgeSubmissions(world: World, report: Report): void {
  const attempts = group(world.attempts, (row) => row.payment);
  const living = new Map(world.workers.map((worker) => [worker.id, at(worker.until)]));
  const now = BigInt(world.now);
  for (const payment of world.payments) {
    const own = attempts.get(payment.id) ?? [];
    const open = own.filter((row) => row.closed === null);
    if (payment.started !== null && at(payment.started) < at(payment.execute)) report(1, payment.id, 'early');
    if (own.some((row) => row.called !== null && at(row.called) < at(payment.execute))) {
      report(1, payment.id, 'called early');
    }
    if (['cancelled', 'expired'].includes(payment.state) && own.length > 0) report(2, payment.id, 'attempt');
    if (open.length > 1) report(3, payment.id, `${open.length} open attempts`);
    if (payment.state !== 'submitting') continue;
    for (const row of open) {
      const unclaimed = row.owner === null && now - at(row.opened) > 30n * SECOND;
      const old = row.called !== null && now - at(row.called) > 90n * SECOND;
      const orphan =
        row.called !== null &&
        now - at(row.called) > 30n * SECOND &&
        now - (living.get(row.owner ?? '') ?? 0n) > 30n * SECOND;
      if (unclaimed || old || orphan) report(10, payment.id, 'nobody works on the open attempt');
    }
  }
}

function judgeKeys(world: World, report: Report): void {
  for (const rowsOfKey of group(world.submissions, (row) => row.key).values()) {
    if (rowsOfKey.length > 1) for (const row of rowsOfKey) report(4, row.payment, 'provider key used twice');
  }
  for (const [id, generations] of group(world.submissions, (row) => row.payment)) {
    const proofs = new Map(generations.map((row) => [row.generation, row.proof]));
    if (proofs.size < generations.length) report(4, id, 'two keys in one generation');
    for (const { generation } of generations) {
      if (generation > 1 && (proofs.get(generation - 1) ?? null) === null) report(4, id, 'no proof');
    }
  }
}

/** Evidence that a payment whose call may have arrived was not executed. */
function provesFailure(row: EvidenceRow): boolean {
  if (row.source === 'person') return true;
  if (row.source === 'answer' || row.source === 'late_answer') return row.kind.startsWith('rejected');
  return row.status === 'failed';
}

/** Silence proves nothing; its proof stands beside at least two silences by each of two ways. */
function isProvenAbsent(known: readonly EvidenceRow[]): boolean {
  const silences = known.filter((row) => row.kind === 'absent').length;
  return silences >= 4 && known.some((row) => row.kind === 'absence_proven');
}

function judgeOutcomes(world: World, report: Report): void {
  const evidence = group(world.evidence, (row) => row.payment);
  const ambiguous = new Set(world.attempts.filter((a) => a.evidence === 'ambiguous').map((a) => a.payment));
  const cases = new Map(world.cases.map((row) => [row.payment, row]));
  for (const payment of world.payments) {
    const known = evidence.get(payment.id) ?? [];
    const proven = known.some(provesFailure) || isProvenAbsent(known);
    if (payment.state === 'failed' && ambiguous.has(payment.id) && !proven) {
      report(7, payment.id, 'failed without proof after an ambiguous attempt');
    }
    if (payment.state === 'succeeded' || payment.state === 'returned') {
      const paid = known.filter((row) => row.status === 'succeeded');
      if (paid.some((row) => (row.amount ?? payment.amount) !== payment.amount))
        report(8, payment.id, 'amount');
      if (paid.some((row) => (row.currency ?? payment.currency) !== payment.currency)) {
        report(8, payment.id, 'currency');
      }
    }
    if (payment.state === 'unknown' && payment.next === null) report(12, payment.id, 'no next inquiry');
    const open = cases.get(payment.id);
    if (payment.state === 'needs_review') {
      if (!open) report(13, payment.id, 'no open case');
      else if (open.owner === null && at(open.due) < BigInt(world.now)) report(13, payment.id, 'no owner');
    }
  }
  const paid = world.payments.filter((p) => p.state === 'succeeded' && world.strict.includes(p.tenant));
  const references = group(
    paid.filter((p) => p.reference !== null),
    (p) => JSON.stringify([p.tenant, p.reference]),
  );
  for (const same of references.values()) {
    if (same.length > 1) for (const payment of same) report(9, payment.id, 'reference paid twice');
  }
}

function judgeQueues(world: World, report: Report): void {
  const now = BigInt(world.now);
  const limit = 120n * SECOND;
  for (const payment of world.payments) {
    if (payment.state !== 'scheduled' || world.hold || world.paused.includes(payment.lane)) continue;
    const waits = at(payment.wake) > at(payment.execute) ? at(payment.wake) : at(payment.execute);
    if (now - waits > limit) report(11, payment.id, 'not started');
  }
  for (const row of world.outbox) {
    const mayWaitUntil = row.kind === 'start' ? at(row.due) - 900n * SECOND : 0n;
    const since = at(row.created) > mayWaitUntil ? at(row.created) : mayWaitUntil;
    if (now - since > 60n * SECOND) report(14, row.payment, 'outbox row waits for more than a minute');
  }
}

export interface JudgeOptions {
  /** Invariants left out, each because the test itself breaks it (a dead outbox, no worker). */
  readonly except?: readonly number[];
}

/**
 * Every breach of invariants 1 to 19 in the stored rows.
 * @param query runs one SQL text and gives its rows.
 */
export async function findBreaches(
  query: <R>(text: string) => Promise<R[]>,
  options: JudgeOptions = {},
): Promise<readonly Breach[]> {
  const [row] = await query<{ world: World }>(LOAD);
  if (!row) throw new Error('the judge could not read the database');
  const breaches: Breach[] = [];
  const report: Report = (invariant, paymentId, what) => {
    if (!options.except?.includes(invariant)) breaches.push({ invariant, paymentId, what });
  };
  judgeHistory(row.world, report);
  judgeSubmissions(row.world, report);
  judgeKeys(row.world, report);
  judgeOutcomes(row.world, report);
  judgeQueues(row.world, report);
  judgeBooks(row.world, report);
  return breaches;
}
