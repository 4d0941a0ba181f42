import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import { OutcomeUnknown } from '../../src/persistence/database-errors.js';
import { Database } from '../../src/persistence/database.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { EngineRig, live, type LifeEnd, type TestEngine } from '../support/engine.js';
import { Latch } from '../support/tapped-database.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';

/** A worker whose way to Postgres breaks: its answers are lost, its connections are cut or ended. */

let rig: EngineRig;
let proxy: TcpProxy;
beforeAll(async () => {
  rig = await EngineRig.start();
  proxy = await startTcpProxy(rig.db.urlOf('payments_worker'));
});
afterAll(async () => {
  // Also those that were silent: the server still thinks that they live.
  proxy.mode = 'cut';
  proxy.mode = 'open';
  await rig.stop();
  await proxy.close();
});

const FAULTS = /^(StorageUnavailable|OutcomeUnknown|LockTimeout|ArmedAborted)$/;
const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms));

/** Lives a payment as under Temporal: an activity that failed by a fault is run again. */
async function persist(on: TestEngine, payment: PaymentRow): Promise<LifeEnd> {
  for (let tries = 0; tries < 500; tries++) {
    try {
      return await live(on, payment);
    } catch (error) {
      if (!FAULTS.test((error as Error).constructor.name)) throw error;
      await pause(100);
    }
  }
  throw new Error(`payment ${payment.id} did not come to an end`);
}

/**
 * A claim whose answer was lost is nobody's until 60 s have passed. They pass at once here, for
 * attempts without a call under way.
 */
async function letLostClaimsAge(on: TestEngine): Promise<void> {
  await until('the calls under way', () => on.provider.callsUnderWay, (n) => n === 0); // prettier-ignore
  await rig.db.query(
    `UPDATE submission_attempt SET call_started_at = clock_timestamp() - interval '61 s'
      WHERE closed_at IS NULL AND call_started_at < clock_timestamp() - interval '2 s'`,
  );
  await closeAbandoned(rig.db.database, null, 'sweep');
}

async function expectPaidOnce(payments: readonly PaymentRow[]): Promise<void> {
  for (const { id } of payments) {
    expect(await rig.state(id)).toBe('succeeded');
    expect((await rig.simulator.effects(id)).count).toBe(1);
  }
  expect((await rig.simulator.allEffects()).duplicates).toEqual([]);
}

describe('one lost answer', () => {
  it.each(['begin-submission', 'claim-attempts', 'record-outcomes'])(
    'of %s, which did commit, leads to one charge',
    async (statement) => {
      const one = await rig.engine();
      const payment = await rig.pay({ inMs: 200 });
      await rig.expectNotBefore([payment]);
      const undo = one.database.tap(statement, async (run) => {
        const answer = await run();
        if (answer.rowCount === 0) return answer;
        undo();
        throw new OutcomeUnknown('the answer was lost');
      });
      const end = persist(one, payment);
      if (statement === 'claim-attempts') {
        await until('the claim', () => rig.attempts(payment.id), ([first]) => first?.called === true); // prettier-ignore
        await rig.db.query(
          `UPDATE submission_attempt SET call_started_at = call_started_at - interval '61 s' WHERE payment_id = $1`,
          [payment.id],
        );
      }
      expect(await end).toBe('succeeded');
      await expectPaidOnce([payment]);
      expect((await rig.rules(payment.id)).filter((rule) => rule === 'T7')).toHaveLength(1);
      expect((await rig.simulator.early()).count).toBe(0);
    },
  );

  it('of a resend, which did commit, leads to one charge', async () => {
    const one = await rig.engine();
    const payment = await rig.pay();
    await rig.simulator.script(payment.id, 'submit', 'reset_before');
    const undo = one.database.tap('resend-unknown', async (run) => {
      await run();
      undo();
      throw new OutcomeUnknown('the answer was lost');
    });
    expect(await persist(one, payment)).toBe('succeeded');
    expect(await rig.attempts(payment.id)).toHaveLength(2);
    await expectPaidOnce([payment]);
  });
});

describe('a COMMIT in doubt', () => {
  const NOTE = { name: 'note', text: `INSERT INTO setting (name, value) VALUES ($1, 'x')` };
  const isNoted = async (name: string): Promise<boolean> =>
    (await rig.db.query(`SELECT 1 FROM setting WHERE name = $1`, [name])).length === 1;

  it.each([
    ['whose answer is lost is an unknown outcome that stands', 'answers_lost', true],
    ['that never arrived is an unknown outcome of which nothing stands', 'cut', false],
  ] as const)('%s', async (name, mode, stands) => {
    const database = rig.tapped('doubt', 1, proxy.url);
    const lost = database.transaction(async (tx) => {
      await tx.query(NOTE, [name]);
      proxy.mode = mode;
    });
    await expect(lost).rejects.toBeInstanceOf(OutcomeUnknown);
    proxy.mode = 'open';
    if (stands) await until('the commit', () => isNoted(name), Boolean);
    expect(await isNoted(name)).toBe(stands);
    // The broken connection did not go back to the pool.
    await database.transaction((tx) => tx.query(NOTE, [`${name}, again`]));
    expect(await isNoted(`${name}, again`)).toBe(true);
  });

  it('that took too long for the driver never gives its answer to the next statement', async () => {
    const database = new Database({
      url: rig.db.urlOf('payments_worker'),
      poolSize: 1,
      applicationName: 'slow',
      queryMs: 200,
    });
    const slow = database.query({ name: 'slow', text: `SELECT 'old' AS text, pg_sleep(1)` });
    await expect(slow).rejects.toBeInstanceOf(OutcomeUnknown);
    const { rows } = await database.query({ name: 'next', text: `SELECT 'new' AS text` });
    expect(rows).toEqual([{ text: 'new' }]);
    await database.close();
  });
});

describe('Postgres away', () => {
  it('while the provider answers: the answer is kept and recorded when it is back', async () => {
    const one = await rig.engine({ url: proxy.url });
    const payment = await rig.pay();
    const answered = new Latch();
    one.provider.aroundSubmit = async (submit) => {
      const answer = await submit();
      proxy.mode = 'cut';
      answered.open();
      return answer;
    };
    const end = persist(one, payment);
    await answered.wait();
    await until('a failed recording', () => one.events.count('fault'), (n) => n > 0); // prettier-ignore
    expect(await rig.state(payment.id)).toBe('submitting');
    proxy.mode = 'open';
    expect(await end).toBe('succeeded');
    expect(await rig.rules(payment.id)).toEqual(['T1', 'T7', 'T9']);
    await expectPaidOnce([payment]);
  });

  it('until the lease is over: what was claimed is not sent, though nobody could tell the worker', async () => {
    // Eight seconds pass while nobody can ask: the ladder must outlive what comes after them.
    const one = await rig.engine({ url: proxy.url, ladderDivisor: 100 });
    const payment = await rig.pay();
    const latch = new Latch();
    const claimed = new Latch();
    one.provider.aroundSubmit = async (submit) => {
      claimed.open();
      await latch.wait();
      return submit();
    };
    const end = persist(one, payment);
    await claimed.wait();
    proxy.mode = 'cut';
    // Its own clock says so; Postgres never answers it.
    await until('the end of its lease', () => one.engine.isWell(), (well) => !well); // prettier-ignore
    latch.open();
    await until('the unsent call', () => one.events.count('callEnded'), (n) => n === 1); // prettier-ignore
    expect(await rig.simulator.requests(payment.id)).toEqual([]);
    one.provider.aroundSubmit = null;
    await closeAbandoned(rig.db.database, null, 'sweep');
    proxy.mode = 'open';
    expect(await end).toBe('succeeded');
    await expectPaidOnce([payment]);
  });
});

describe('a worker that could not renew its lease', () => {
  it('does not take its lane for closed: what is due waits a moment, and not for people', async () => {
    const one = await rig.engine({ ladderDivisor: 100 });
    const undo = one.database.tap('worker-renew', () => Promise.reject(new OutcomeUnknown('no answer')));
    // By its own clock it ends a moment earlier than for everybody else.
    const isOver = async (): Promise<boolean> => {
      const [last] = await rig.db.query<{ is_over: boolean }>(
        `SELECT lease_expires_at < clock_timestamp() AS is_over FROM worker ORDER BY started_at DESC LIMIT 1`,
      );
      return last?.is_over === true && !one.engine.isWell();
    };
    await until('the end of its lease', isOver, Boolean);
    const payment = await rig.pay();
    const end = persist(one, payment);
    const asked = (statement: string): number => one.database.asked.get(statement) ?? 0;
    // Past the time after which payments of a closed lane are sent back.
    await until('many refusals', () => asked('begin-submission') >= 8 || asked('release-armed') > 0, Boolean); // prettier-ignore
    expect(asked('release-armed')).toBe(0);
    undo();
    expect(await end).toBe('succeeded');
    await expectPaidOnce([payment]);
  });
});

describe('a way to Postgres that is silent, its connections half-open', () => {
  it('over the due time of 20 payments: each is paid once when it carries again', async () => {
    // The silence is longer than the ladder of the other tests.
    const one = await rig.engine({ url: proxy.url, ladderDivisor: 100 });
    const payments = await rig.payMany(20, 800);
    await rig.expectNotBefore(payments);
    const ends = Promise.all(payments.map((p) => persist(one, p)));
    await pause(600);
    proxy.mode = 'silent';
    // Its lease ends by its own clock: whatever it had claimed is not sent.
    await until('the end of its lease', () => one.engine.isWell(), (well) => !well); // prettier-ignore
    proxy.mode = 'open';
    let isOver = false;
    void ends.then(() => (isOver = true));
    await until('the end of all', async () => {
      await letLostClaimsAge(one);
      return isOver;
    }, Boolean, 90_000); // prettier-ignore
    for (const end of await ends) expect(end).toBe('succeeded');
    await expectPaidOnce(payments);
    expect((await rig.simulator.early()).count).toBe(0);
  }, 120_000);
});

describe('a way to Postgres that keeps breaking', () => {
  it('loses and doubles nothing: connections ended, cut, and answers lost under 80 due payments (PG-01, CR-01)', async () => {
    const one = await rig.engine({ url: proxy.url });
    const payments = await rig.payMany(80, 1_000);
    await rig.expectNotBefore(payments);
    const ends = Promise.all(payments.map((p) => persist(one, p)));
    const faulty = (async () => {
      // All are armed, and what follows spans their due time: a quick machine is done with 80 in a moment.
      await pause(850);
      proxy.mode = 'answers_lost';
      await pause(400);
      for (let round = 0; round < 4; round++) {
        await rig.db.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name LIKE 'engine-%'`,
        );
        await pause(60);
        proxy.mode = 'answers_lost';
        await pause(120);
        proxy.mode = 'cut';
        await pause(60);
        proxy.mode = 'open';
        await pause(150);
      }
    })();
    await faulty;
    let isOver = false;
    void ends.then(() => (isOver = true));
    await until('the end of all', async () => {
      await letLostClaimsAge(one);
      return isOver;
    }, Boolean); // prettier-ignore
    for (const end of await ends) expect(end).toBe('succeeded');
    await expectPaidOnce(payments);
    expect((await rig.simulator.early()).count).toBe(0);
    // Invariant 1: lost claims were moved into the past.
    expect(await rig.breaches([1])).toEqual([]);
    // The faults met the worker: otherwise this test shows nothing.
    expect(one.events.count('fault')).toBeGreaterThan(0);
    expect(one.engine.isWell()).toBe(true);
  });
});
