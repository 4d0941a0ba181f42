import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAYMENT_STATES, type PaymentState } from '../../src/domain/payment-state.js';
import { startTestApi, validCreate, type ApiAnswer, type Client, type TestApi } from '../support/api.js';
import { unique } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { bringTo } from '../support/payment-states.js';
import { createTestIssuer, type TestIssuer } from '../support/people.js';
import { STATEMENT } from '../support/review-world.js';

/**
 * Every cell of the answer table, state by command, written down once more from the contract. The
 * second half of a resolution has tests of its own.
 */

type CommandName =
  | 'create, same body'
  | 'create, other body'
  | 'cancel'
  | 'reschedule'
  | 'hold'
  | 'release'
  | 'escalate'
  | 'resolve';

interface Cell {
  readonly status: number;
  readonly code?: string;
  /** The state shown afterwards, when the answer is a payment. */
  readonly state?: PaymentState;
  /** The payment has moved. */
  readonly moves?: true;
  readonly outcome?: 'unknown';
}

const REPLAY: Cell = { status: 200 };
const REUSED: Cell = { status: 422, code: 'idempotency_key_reused' };
const CREATES = { 'create, same body': REPLAY, 'create, other body': REUSED } as const;
const NOT_APPLICABLE: Cell = { status: 409, code: 'not_applicable' };
const FINAL: Cell = { status: 409, code: 'payment_final' };
const STARTED: Cell = { status: 409, code: 'submission_started' };
const UNKNOWN: Cell = { ...STARTED, outcome: 'unknown' };
const started = (cell: Cell) => ({
  ...CREATES,
  cancel: cell,
  reschedule: cell,
  hold: cell,
  release: NOT_APPLICABLE,
  escalate: NOT_APPLICABLE,
  resolve: NOT_APPLICABLE,
});
const final = (cancel: Cell) => ({
  ...CREATES,
  cancel,
  reschedule: FINAL,
  hold: FINAL,
  release: FINAL,
  escalate: FINAL,
  resolve: FINAL,
});
const ESCALATED: Cell = { status: 200, state: 'needs_review', moves: true };

const TABLE: Readonly<Record<PaymentState, Readonly<Record<CommandName, Cell>>>> = {
  scheduled: {
    ...CREATES,
    cancel: { status: 200, state: 'cancelled', moves: true },
    reschedule: { status: 200, state: 'scheduled', moves: true },
    hold: { status: 200, state: 'held', moves: true },
    release: NOT_APPLICABLE,
    escalate: NOT_APPLICABLE,
    resolve: NOT_APPLICABLE,
  },
  held: {
    ...CREATES,
    cancel: { status: 200, state: 'cancelled', moves: true },
    reschedule: NOT_APPLICABLE,
    hold: { status: 200, state: 'held' },
    release: { status: 200, state: 'scheduled', moves: true },
    escalate: NOT_APPLICABLE,
    resolve: NOT_APPLICABLE,
  },
  submitting: started(STARTED),
  submitted: { ...started(STARTED), escalate: ESCALATED },
  unknown: { ...started(UNKNOWN), escalate: ESCALATED },
  // The first person: 202. Nothing moves before the second.
  needs_review: { ...started(UNKNOWN), resolve: { status: 202 } },
  succeeded: final(FINAL),
  failed: final(FINAL),
  returned: final(FINAL),
  cancelled: final({ status: 200, state: 'cancelled' }),
  expired: final({ status: 200, state: 'expired' }),
};

/** States that only a payment that is due can reach. */
const NEEDS_DUE: ReadonlySet<PaymentState> = new Set(
  PAYMENT_STATES.filter((state) => !['scheduled', 'held', 'cancelled'].includes(state)),
);

interface World {
  readonly id: string;
  readonly key: string;
  readonly body: Record<string, unknown>;
  readonly version: number;
}

let db: TestDatabase;
let api: TestApi;
let client: Client;
let stranger: Client;
let issuer: TestIssuer;
/** Somebody who may resolve, and the same in another tenant. */
let person: Client;
let foreigner: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  issuer = await createTestIssuer();
  api = await startTestApi({ database: db.database, env: issuer.env });
  client = await api.client();
  stranger = await api.client();
  person = api.as(await issuer.token({ tenant: client.tenant }), client.tenant);
  foreigner = api.as(await issuer.token({ tenant: stranger.tenant }), stranger.tenant);
});
afterAll(async () => {
  await api.close();
  issuer.close();
  await db.drop();
});

/** A payment of its own in this state, with the request that made it. */
async function paymentIn(state: PaymentState): Promise<World> {
  const key = unique('order');
  const body = validCreate(NEEDS_DUE.has(state) ? { execute_at: 'now' } : {});
  const created = await client.post('/v1/payments', { headers: { 'idempotency-key': key }, body });
  expect(created.status, created.text).toBe(201);
  const id = created.body.id as string;
  await bringTo(state, db.database, id);
  const row = await head(id);
  expect(row.state).toBe(state);
  return { id, key, body, version: row.version };
}

async function head(
  id: string,
): Promise<{ state: PaymentState; version: number; transitions: number; outbox: number }> {
  const [row] = await db.query<{ state: PaymentState; version: number; transitions: number; outbox: number }>(
    `SELECT state, version, (SELECT count(*)::integer FROM payment_transition WHERE payment_id = $1) AS transitions,
            (SELECT count(*)::integer FROM outbox WHERE payment_id = $1) AS outbox
       FROM payment WHERE id = $1`,
    [id],
  );
  if (!row) throw new Error(`no payment ${id}`);
  return row;
}

const later = (): string => new Date(Date.now() + 48 * 3_600_000).toISOString();

/** Keys operate nothing: the person of the same tenant does. */
const personBeside = (key: Client): Client => (key === stranger ? foreigner : person);

function send(command: CommandName, world: World, as: Client = client): Promise<ApiAnswer> {
  switch (command) {
    case 'create, same body':
      return as.post('/v1/payments', { headers: { 'idempotency-key': world.key }, body: world.body });
    case 'create, other body':
      return as.post('/v1/payments', {
        headers: { 'idempotency-key': world.key },
        body: { ...world.body, amount: 2000 },
      });
    case 'reschedule':
      return as.post(`/v1/payments/${world.id}/reschedule`, {
        headers: { 'if-match': `"v${world.version}"` },
        body: { execute_at: later() },
      });
    case 'resolve':
      return personBeside(as).post(`/v1/payments/${world.id}/resolutions`, {
        headers: { 'if-match': `"v${world.version}"` },
        body: { outcome: 'failed', reason_code: 'provider_refused', proof: STATEMENT },
      });
    case 'hold':
    case 'release':
    case 'escalate':
      return personBeside(as).post(`/v1/payments/${world.id}/${command}`);
    case 'cancel':
      return as.post(`/v1/payments/${world.id}/${command}`);
  }
}

const STATES = PAYMENT_STATES;
const COMMANDS = Object.keys(TABLE.scheduled) as CommandName[];
const ON_ONE_PAYMENT = COMMANDS.filter((command) => !command.startsWith('create'));

describe.each(STATES)('a payment that is %s', (state) => {
  it.each(COMMANDS)(`answers %s as the table says (CX-02)`, async (command) => {
    const cell = TABLE[state][command];
    const world = await paymentIn(state);
    const before = await head(world.id);
    const answer = await send(command, world);
    const after = await head(world.id);

    expect(answer.status, answer.text).toBe(cell.status);
    if (cell.code !== undefined) expect(answer.body.code).toBe(cell.code);
    if (cell.status === 200) {
      expect(answer.body.id).toBe(world.id);
      expect(answer.body.state).toBe(cell.state ?? state);
      expect(answer.headers['etag']).toBe(`"v${after.version}"`);
    } else if (cell.status === 202) {
      expect(answer.body).toMatchObject({ payment_id: world.id, status: 'proposed' });
    } else if (cell.code !== 'idempotency_key_reused') {
      expect(answer.body).toMatchObject({ state, version: before.version });
    }
    if (cell.code === 'submission_started') {
      expect(answer.body.may_have_moved).toBe(true);
      expect(answer.body.submission_started_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z$/);
      expect(answer.body.next_step).toMatch(/GET/);
    }
    if (cell.status >= 400) expect(answer.body.outcome).toBe(cell.outcome);
    if (command === 'create, same body') expect(answer.headers['idempotency-replayed']).toBe('true');

    const moves = cell.moves ? 1 : 0;
    expect(after.version).toBe(before.version + moves);
    expect(after.transitions).toBe(before.transitions + moves);
    expect(after.outbox).toBe(before.outbox + moves);
    if (!cell.moves) expect(after.state).toBe(before.state);
  });

  it('is not found by another tenant, whatever it asks (ID-04)', async () => {
    const world = await paymentIn(state);
    const before = await head(world.id);
    const asked = await Promise.all([
      stranger.get(`/v1/payments/${world.id}`),
      stranger.get(`/v1/payments/${world.id}/history`),
      ...ON_ONE_PAYMENT.map((c) => send(c, world, stranger)),
    ]);
    for (const answer of asked) expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
    expect(await head(world.id)).toEqual(before);
  });
});

describe('a payment that does not exist', () => {
  it.each(ON_ONE_PAYMENT)('answers %s with 404', async (command) => {
    const world = { id: `pay_${'a'.repeat(32)}`, key: '', body: {}, version: 1 };
    const answer = await send(command, world);
    expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
  });
});

describe('an escalation', () => {
  it('opens a case, wakes the workflow and plans the next lookup (T16)', async () => {
    const { id } = await paymentIn('unknown');
    const answer = await person.post(`/v1/payments/${id}/escalate`);
    expect([answer.status, typeof answer.body.next_action_at]).toEqual([200, 'string']);
    const [row] = await db.query(
      `SELECT reason, closed_at, (SELECT count(*)::integer FROM outbox o WHERE o.payment_id = $1 AND o.kind = 'wake') AS wakes
         FROM review_case WHERE payment_id = $1`,
      [id],
    );
    expect(row).toEqual({ reason: 'operator', closed_at: null, wakes: 1 });
  });

  it('by many at once opens one case: one 200, the others 409', async () => {
    const { id } = await paymentIn('submitted');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => person.post(`/v1/payments/${id}/escalate`)),
    );
    expect(answers.map((a) => a.status).sort()).toEqual([200, ...(Array(7).fill(409) as number[])]);
    expect(await db.query(`SELECT 1 FROM review_case WHERE payment_id = $1`, [id])).toHaveLength(1);
  });
});

describe('a stale If-Match', () => {
  const stale = { headers: { 'if-match': '"v99"' } };

  it.each(['escalate', 'resolve'] as const)(
    'keeps a payment from being changed by %s: 412',
    async (command) => {
      const world = await paymentIn(command === 'escalate' ? 'unknown' : 'needs_review');
      const answer =
        command === 'escalate'
          ? await person.post(`/v1/payments/${world.id}/escalate`, stale)
          : await send(command, { ...world, version: 99 });
      expect([answer.status, answer.body.code]).toEqual([412, 'version_mismatch']);
      expect((await head(world.id)).version).toBe(world.version);
    },
  );

  it.each(['scheduled', 'held'] as const)('keeps a %s payment from being cancelled: 412', async (state) => {
    const { id, version } = await paymentIn(state);
    const answer = await client.post(`/v1/payments/${id}/cancel`, stale);
    expect([answer.status, answer.body.code]).toEqual([412, 'version_mismatch']);
    expect(answer.body).toMatchObject({ state, version });
    expect((await head(id)).state).toBe(state);
  });

  it('does not turn the repeat of a cancel into a refusal', async () => {
    const { id } = await paymentIn('cancelled');
    expect((await client.post(`/v1/payments/${id}/cancel`, stale)).status).toBe(200);
  });

  it('keeps a scheduled payment from being rescheduled: 412', async () => {
    const { id } = await paymentIn('scheduled');
    const answer = await client.post(`/v1/payments/${id}/reschedule`, {
      ...stale,
      body: { execute_at: later() },
    });
    expect([answer.status, answer.body.code]).toEqual([412, 'version_mismatch']);
  });

  it('does not hide that submission has started', async () => {
    const { id } = await paymentIn('submitting');
    const answer = await client.post(`/v1/payments/${id}/cancel`, stale);
    expect([answer.status, answer.body.code]).toEqual([409, 'submission_started']);
  });
});
