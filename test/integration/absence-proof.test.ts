import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareLateAnswer } from '../../src/payments/late-answer.js';
import { findKnownPayment, proveAbsence, type ProofTerms } from '../../src/submission/absence.store.js';
import { ask, EngineRig, live, pair, type EngineOptions } from '../support/engine.js';
import { addEvidence, openAttempt, paymentIn, run } from '../support/payment-states.js';
import { startSimulator, type FaultInput } from '../support/simulator.js';
import { until } from '../support/until.js';

/** The only silence that fails a payment: every condition broken alone, then whole lives. */

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start();
});
afterAll(() => rig.stop());

const MINUTE_MS = 60_000;
const TERMS: ProofTerms = {
  landedAfterMs: MINUTE_MS,
  spacingMs: 10 * MINUTE_MS,
  isStrong: true,
  // Where the payments of `paymentIn` were sent to.
  target: { name: 'simulated', account: 'test', baseUrl: 'http://127.0.0.1' },
};

/** As the owner with triggers off: times and classes that no program may rewrite. */
async function plant(id: string, table: 'submission' | 'submission_attempt', set: string): Promise<void> {
  await rig.db.query(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
  await rig.db.query(`UPDATE ${table} SET ${set} WHERE payment_id = $1`, [id]);
  await rig.db.query(`ALTER TABLE ${table} ENABLE TRIGGER ALL`);
}

const ago = (minutes: number): string => `clock_timestamp() - interval '${minutes} minutes'`;

/** Evidence as a lookup of so many minutes ago left it. */
async function looked(id: string, kind: string, path: string, minutes: number): Promise<void> {
  await rig.db.query(
    `INSERT INTO evidence (payment_id, tenant_id, generation, source, kind, paths, at)
     SELECT id, tenant_id, 1, 'lookup', $2, ARRAY[$3], ${ago(minutes)} FROM payment WHERE id = $1`,
    [id, kind, path],
  );
}

interface Seen {
  readonly firstMinutes?: number;
  readonly lastMinutes?: number;
  readonly controlMinutes?: number | null;
}

/** Twice silent by one way, with a known object found in between. */
async function silence(id: string, path: string, seen: Seen = {}): Promise<void> {
  await looked(id, 'absent', path, seen.firstMinutes ?? 12);
  if (seen.controlMinutes !== null) await looked(id, 'control_found', path, seen.controlMinutes ?? 6);
  await looked(id, 'absent', path, seen.lastMinutes ?? 1);
}

/** Class C, sent 20 minutes ago, of which every condition of the proof holds but what `seen` says. */
async function silent(seen: Partial<Record<'reference' | 'list_scan', Seen | null>> = {}): Promise<string> {
  const id = await paymentIn('unknown', rig.db.database, { tenant: rig.tenant, lane: rig.lane });
  await plant(
    id,
    'submission',
    `capability_class = 'C', key_valid_until = clock_timestamp() + interval '99 years'`,
  );
  await plant(id, 'submission_attempt', `call_started_at = ${ago(20)}, closed_at = ${ago(19)}`);
  for (const path of ['reference', 'list_scan'] as const) {
    if (seen[path] !== null) await silence(id, path, seen[path]);
  }
  return id;
}

async function prove(id: string, terms: Partial<ProofTerms> = {}): Promise<boolean> {
  const [row] = await rig.db.query<{ version: number }>(`SELECT version FROM payment WHERE id = $1`, [id]);
  return proveAbsence(rig.db.database, { id, version: row?.version ?? 0 }, 'worker:test', {
    ...TERMS,
    ...terms,
  });
}

async function expectUnproven(id: string, terms: Partial<ProofTerms> = {}): Promise<void> {
  const before = [await rig.state(id), await rig.evidence(id)];
  expect(await prove(id, terms)).toBe(false);
  expect([await rig.state(id), await rig.evidence(id)]).toEqual(before);
}

describe('the absence proof (T14)', () => {
  it('holds the payment before it reads: a late answer waits for it, and then has a case', async () => {
    const id = await silent();
    const database = rig.tapped('prover', 2);
    let comparing: Promise<unknown> = Promise.resolve();
    database.tap('prove-absence', async (proves) => {
      comparing = rig.db.database.transaction((tx) =>
        compareLateAnswer(
          tx,
          {
            paymentId: id,
            generation: 1,
            class: 'accepted',
            status: 'succeeded',
            providerRef: null,
            actor: 'test',
          },
          () => Promise.resolve(),
        ),
      );
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
      await until('the late answer waits', () => rig.db.query(waiting), (rows) => rows.length > 0); // prettier-ignore
      return proves();
    });
    const [row] = await rig.db.query<{ version: number }>(`SELECT version FROM payment WHERE id = $1`, [id]);
    expect(await proveAbsence(database, { id, version: row?.version ?? 0 }, 'worker:test', TERMS)).toBe(true);
    expect(await comparing).toMatchObject({ caseOpened: true });
    expect([await rig.state(id), await rig.openCases(id)]).toEqual(['failed', ['contradiction']]);
  });

  it('proves nothing while somebody else holds the payment', async () => {
    const id = await silent();
    await rig.db.database.transaction(async (tx) => {
      await run(tx, `SELECT 1 FROM payment WHERE id = $1 FOR NO KEY UPDATE`, [id]);
      expect(await prove(id)).toBe(false);
    });
    expect(await prove(id)).toBe(true);
  });

  it('fails the payment when every condition holds, and files itself as evidence (UO-02)', async () => {
    const id = await silent();
    expect(await prove(id)).toBe(true);
    expect(await rig.state(id)).toBe('failed');
    expect((await rig.rules(id)).at(-1)).toBe('T14');
    const [proof] = await rig.db.query(
      `SELECT kind, code, paths FROM evidence WHERE payment_id = $1 ORDER BY id DESC LIMIT 1`,
      [id],
    );
    expect(proof).toEqual({
      kind: 'absence_proven',
      code: 'never_executed',
      paths: ['reference', 'list_scan'],
    });
    // 1: the planted call is older than the payment.
    expect((await rig.breachesOf(id)).filter((breach) => breach.invariant !== 1)).toEqual([]);
    await expectUnproven(id);
  });

  it('(a) is refused while an attempt is open', async () => {
    const id = await silent();
    await openAttempt(rig.db.database, id, 2);
    await expectUnproven(id);
  });

  it('(b) is refused until deadline, longest flight and lag since the last send are over', async () => {
    const id = await silent();
    await expectUnproven(id, { landedAfterMs: 30 * MINUTE_MS });
  });

  it('(b) does not count a silence from before that', async () => {
    // Sent 20 minutes ago, landed 15 minutes later: the silence of 12 minutes ago said nothing.
    const id = await silent();
    await expectUnproven(id, { landedAfterMs: 10 * MINUTE_MS });
  });

  it.each(['reference', 'list_scan'] as const)('(c) is refused without two silences by %s', async (path) => {
    await expectUnproven(await silent({ [path]: null }));
    const once = await silent({ [path]: null });
    await looked(once, 'absent', path, 12);
    await looked(once, 'control_found', path, 6);
    await expectUnproven(once);
  });

  it.each(['reference', 'list_scan'] as const)(
    '(c) is refused when the two by %s are less than 10 minutes apart',
    async (path) => {
      await expectUnproven(await silent({ [path]: { firstMinutes: 10, lastMinutes: 1 } }));
    },
  );

  it.each(['reference', 'list_scan'] as const)(
    '(d) is refused unless %s found a known object meanwhile',
    async (path) => {
      await expectUnproven(await silent({ [path]: { controlMinutes: null } }));
      await expectUnproven(await silent({ [path]: { controlMinutes: 13 } }));
    },
  );

  it.each(['reference', 'list_scan'] as const)(
    '(d) is refused when %s once missed a known object meanwhile',
    async (path) => {
      const id = await silent();
      await looked(id, 'control_missed', path, 3);
      await expectUnproven(id);
    },
  );

  it('(e) is refused where lookups are not strong', async () => {
    await expectUnproven(await silent(), { isStrong: false });
  });

  it.each(['found', 'found_other', 'found_many'])(
    '(f) is refused when a lookup once answered %s',
    async (kind) => {
      const id = await silent();
      await addEvidence(rig.db.database, id, { source: 'lookup', kind });
      await expectUnproven(id);
    },
  );

  it('(f) is refused when an event, a file or a late answer named it, or an answer its object', async () => {
    for (const source of ['webhook', 'settlement'] as const) {
      const id = await silent();
      await addEvidence(rig.db.database, id, { source, kind: 'payout.updated' });
      await expectUnproven(id);
    }
    const late = await silent();
    await addEvidence(rig.db.database, late, { source: 'late_answer', kind: 'accepted' });
    await expectUnproven(late);
    const named = await silent();
    await rig.db.query(`UPDATE payment SET provider_ref = 'po_named' WHERE id = $1`, [named]);
    await expectUnproven(named);
  });

  it('is refused in every class but A and C', async () => {
    for (const capability of ['B', 'D', 'T']) {
      const id = await silent();
      await plant(id, 'submission', `capability_class = '${capability}'`);
      await expectUnproven(id);
    }
  });

  it('is refused in class A while the payment may still be sent again, and given when that is over', async () => {
    const open = await silent();
    await plant(
      open,
      'submission',
      `capability_class = 'A', key_valid_until = clock_timestamp() + interval '1 hour'`,
    );
    await expectUnproven(open);
    await plant(open, 'submission', `key_valid_until = clock_timestamp()`);
    expect(await prove(open)).toBe(true);
    const stored = await silent();
    await plant(
      stored,
      'submission',
      `capability_class = 'A', key_valid_until = clock_timestamp() + interval '1 hour'`,
    );
    await plant(stored, 'submission_attempt', `http_status = 500, replayed = true`);
    expect(await prove(stored)).toBe(true);
  });

  it.each(['submitted', 'needs_review', 'submitting', 'succeeded'] as const)(
    'is refused in %s',
    async (state) => {
      const id = await silent();
      await rig.plant(`UPDATE payment SET state = '${state}' WHERE id = '${id}'`);
      await expectUnproven(id);
    },
  );

  it.each([
    ['adapter', { name: 'simulated_b' }],
    ['account', { account: 'another' }],
    ['address', { baseUrl: 'http://127.0.0.2' }],
  ] as const)('is refused to a worker whose %s is not the one it was sent to', async (_, other) => {
    await expectUnproven(await silent(), { target: { ...TERMS.target, ...other } });
  });

  it('is refused when the payment moved since it was read', async () => {
    const id = await silent();
    expect(await proveAbsence(rig.db.database, { id, version: 1 }, 'worker:test', TERMS)).toBe(false);
  });
});

/** What is small enough that a life with a ladder divided by 1,000 can meet every condition. */
const FAST: EngineOptions = {
  callDeadlineMs: 150,
  provider: { profile: 'C', descriptor: { maxInFlightMs: 1 } },
};

async function lane(withKnown: boolean, options: EngineOptions): Promise<string> {
  const name = await rig.addLane({});
  if (!withKnown) return name;
  const on = await rig.engine(options);
  expect(await live(on, await rig.pay({ lane: name }))).toBe('succeeded');
  return name;
}

describe('a whole life of class C', () => {
  const lookAbsent: FaultInput = 'hang';

  it('whose request never arrived fails by proof, with what it rests on in evidence', async () => {
    const on = await rig.engine(FAST);
    const payment = await rig.pay({ lane: await lane(true, FAST) });
    await rig.simulator.script(payment.id, 'submit', lookAbsent);
    expect(await live(on, payment)).toBe('failed');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T13', 'T14']);
    const evidence = await rig.evidence(payment.id);
    expect(evidence.at(-1)).toBe('lookup:absence_proven');
    expect(evidence.filter((kind) => kind === 'lookup:control_found').length).toBeGreaterThan(2);
    expect(await rig.breachesOf(payment.id)).toEqual([]);
  });

  it('without a known object to look for is reviewed by people', async () => {
    const on = await rig.engine(FAST);
    const payment = await rig.pay({ lane: await lane(false, FAST) });
    await rig.simulator.script(payment.id, 'submit', lookAbsent);
    expect(await live(on, payment)).toBe('needs_review');
    expect(await rig.openCases(payment.id)).toEqual(['inquiry_exhausted']);
  });

  it('is not failed when the list does not show the known object either', async () => {
    const on = await rig.engine(FAST);
    const payment = await rig.pay({ lane: await lane(true, FAST) });
    await rig.simulator.script(payment.id, 'submit', lookAbsent);
    on.provider.aroundLookup = async (lookup, refs) =>
      refs.by === 'list_scan' ? { kind: 'absent', by: ['list_scan'] } : lookup();
    expect(await live(on, payment)).toBe('needs_review');
    expect(await rig.evidence(payment.id)).toContain('lookup:control_missed');
  });

  it('is not failed where the provider has no list to scan', async () => {
    const options: EngineOptions = {
      ...FAST,
      provider: {
        profile: 'C',
        descriptor: { maxInFlightMs: 1, lookup: { by: ['provider_id', 'reference'], consistency: 'strong' } },
      },
    };
    const on = await rig.engine(options);
    const payment = await rig.pay({ lane: await lane(true, options) });
    await rig.simulator.script(payment.id, 'submit', lookAbsent);
    expect(await live(on, payment)).toBe('needs_review');
  });

  it('is adopted when the money moved after all, however often the lookup lied before (F15, F16)', async () => {
    const on = await rig.engine(FAST);
    const payment = await rig.pay({ lane: await lane(true, FAST) });
    await rig.simulator.plan({
      scripts: [
        {
          reference: payment.id,
          submit: ['reset_after'],
          lookup: ['none', { kind: 'lookup_absent', times: 3 }],
        },
      ],
    });
    expect(await live(on, payment)).toBe('succeeded');
    expect(await rig.history(payment.id)).not.toContain('failed');
    expect((await rig.simulator.effects(payment.id)).count).toBe(1);
  });

  it('sent to one place is not failed by the silence of another that shows its own payments', async () => {
    const sentFrom = await rig.engine(FAST);
    const elsewhere = await startSimulator();
    try {
      const name = await rig.addLane({});
      const options = { ...FAST, provider: { ...FAST.provider, baseUrl: elsewhere.url } };
      const restarted = await rig.engine(options);
      expect(await live(restarted, await rig.pay({ lane: name }))).toBe('succeeded');
      const payment = await rig.pay({ lane: name });
      await rig.simulator.script(payment.id, 'submit', 'reset_after');
      expect(await pair(sentFrom, payment).submit).toMatchObject({ kind: 'outcome_open' });
      expect(await ask(restarted, payment.id)).toBe('needs_review');
      expect((await rig.simulator.effects(payment.id)).count).toBe(1);
      const told = await rig.db.query<{ kind: string; code: string }>(
        `SELECT DISTINCT e.kind, e.code FROM evidence e
          WHERE e.payment_id = $1 AND e.source = 'lookup' AND e.id > (SELECT a.id FROM evidence a
            WHERE a.payment_id = e.payment_id AND a.source = 'answer')`,
        [payment.id],
      );
      expect(told).toEqual([{ kind: 'cannot_tell', code: 'other_target' }]);
    } finally {
      await elsewhere.stop();
    }
  });

  it('does not take a payment of another place for a known object', async () => {
    const name = await rig.addLane({});
    const known = await paymentIn('succeeded', rig.db.database, { tenant: rig.tenant, lane: name });
    await rig.plant(`UPDATE payment SET provider_ref = 'po_known' WHERE id = '${known}'`);
    const asked = { id: await silent(), lane: name };
    expect(await findKnownPayment(rig.db.database, asked, TERMS.target)).toBe(known);
    for (const other of [{ name: 'simulated_b' }, { account: 'another' }, { baseUrl: 'http://127.0.0.2' }]) {
      expect(await findKnownPayment(rig.db.database, asked, { ...TERMS.target, ...other })).toBeNull();
    }
  });
});
