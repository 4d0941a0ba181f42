import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDatabaseGauges } from '../../src/metrics/database-gauges.js';
import { createLogger } from '../../src/platform/logger.js';
import { finishEvent, takeEvents } from '../../src/webhooks/incoming/webhook-inbox.store.js';
import { Latch } from '../support/tapped-database.js';
import { until } from '../support/until.js';
import { counted, eventBody, found, newEventId, WebhookRig } from '../support/webhook-rig.js';

let rig: WebhookRig;
beforeAll(async () => {
  rig = await WebhookRig.start();
});
afterAll(() => rig.stop());

/** A payment whose end the provider knows, and an event about it. */
async function toldPayment(): Promise<{ readonly id: string; readonly event: string }> {
  const id = await rig.payment('submitted');
  rig.a.holds(id, 'succeeded');
  const event = newEventId();
  await rig.tell(eventBody(id, { id: event }));
  return { id, event };
}

const take = (forMs = 60_000) => takeEvents(rig.db.database, rig.a.name, 100, forMs);

describe('the inbox', () => {
  it('gives an event to one worker at a time', async () => {
    const { event } = await toldPayment();
    const taken = await Promise.all(Array.from({ length: 10 }, () => take()));
    expect(taken.flat().map((row) => row.eventId)).toEqual([event]);
    await rig.endHolds();
    const { inbox } = rig.inbox();
    inbox.start();
    await rig.untilProcessed();
    await inbox.stop();
  });

  it('takes what a dead worker held when its time is over', async () => {
    const { id, event } = await toldPayment();
    expect((await take()).map((row) => row.eventId)).toEqual([event]);
    const { inbox } = rig.inbox();
    inbox.start();
    const { event: second } = await toldPayment();
    await rig.untilProcessed([second]);
    expect([await rig.state(id), (await rig.row(event))?.processed]).toEqual(['submitted', false]);
    await rig.endHolds();
    await rig.untilProcessed([event]);
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['succeeded', ['T17']]);
    await inbox.stop();
  });

  const CUTS = ['webhook-match', 'news-lock', 'news-file', 'move-T17-submitted-wake', 'webhook-finish'];
  it.each(CUTS.flatMap((statement) => [[statement, 'before'], [statement, 'after']] as const))(
    'cut off at %s, %s it ran, does its work again and once (stop point G)',
    async (statement, when) => {
      const { inbox, database } = rig.inbox();
      let cut = false;
      database.tap(statement, async (run) => {
        if (cut) return run();
        cut = true;
        if (when === 'after') await run();
        throw new Error('the connection is cut');
      });
      const { id, event } = await toldPayment();
      inbox.start();
      await until('it is cut', () => cut, (isCut) => isCut); // prettier-ignore
      await until('it is written down, or held', () => rig.faults.length, (n) => n > 0); // prettier-ignore
      await until('it ends', async () => {
        await rig.endHolds();
        return (await rig.row(event))?.processed;
      }, (processed) => processed === true); // prettier-ignore
      await inbox.stop();
      expect([await rig.state(id), await rig.rules(id)]).toEqual(['succeeded', ['T17']]);
      const told = (await rig.evidence(id)).filter((line) => line.startsWith('webhook'));
      expect(told).toEqual(['webhook:told:succeeded']);
    },
  ); // prettier-ignore

  it('moves a payment once by two events that two workers process at the same moment', async () => {
    const id = await rig.payment('unknown');
    const both = new Latch();
    let asked = 0;
    rig.a.ledger.set(id, async () => {
      if (++asked === 2) both.open();
      await both.wait();
      return found(id, 'succeeded');
    });
    const events = [newEventId(), newEventId()];
    const workers = [rig.inbox().inbox, rig.inbox().inbox];
    for (const worker of workers) worker.start();
    await Promise.all(events.map((event) => rig.tell(eventBody(id, { id: event }))));
    await rig.untilProcessed(events);
    for (const worker of workers) await worker.stop();
    expect([await rig.state(id), await rig.rules(id)]).toEqual(['succeeded', ['T14']]);
    const results = await Promise.all(events.map(async (event) => (await rig.row(event))?.result));
    expect(results.sort()).toEqual(['agreed', 'moved']);
  });

  it('lets neither a poisoned event nor one that hangs delay others', async () => {
    const hung = new Latch();
    const poisoned = await Promise.all(Array.from({ length: 20 }, () => rig.payment('submitted')));
    const poison = (): never => {
      throw new Error('poison');
    };
    for (const id of poisoned) rig.a.ledger.set(id, poison);
    const slow = await rig.payment('submitted');
    rig.a.ledger.set(slow, async () => {
      await hung.wait();
      return found(slow, 'succeeded');
    });
    for (const id of [...poisoned, slow]) await rig.tell(eventBody(id));
    const { inbox } = rig.inbox();
    inbox.start();
    const { id, event } = await toldPayment();
    await rig.untilProcessed([event]);
    expect([await rig.state(id), await rig.state(slow)]).toEqual(['succeeded', 'submitted']);
    const open = () =>
      rig.db.query(
        `SELECT 1 FROM webhook_inbox WHERE payment_id = ANY ($1) AND processed_at IS NULL AND result = 'fault'`,
        [poisoned],
      );
    await until('each poisoned one was tried and given back', open, (rows) => rows.length === 20);
    hung.open();
    for (const each of poisoned) rig.a.holds(each, 'succeeded');
    await rig.makeDue();
    await rig.untilProcessed();
    await inbox.stop();
    expect(await rig.state(slow)).toBe('succeeded');
  });

  it('files what an event says once, also when two workers hold it', async () => {
    const { id, event } = await toldPayment();
    const [first] = await take();
    await rig.endHolds();
    const [second] = await take();
    if (!first || !second) throw new Error('the event was not taken twice');
    expect([first, second].map((row) => [row.eventId, row.paymentId])).toEqual([[event, null], [event, null]]);
    const { processing } = rig.inbox();
    const verdicts = await Promise.all([first, second].map((row) => processing.process(rig.a, row)));
    expect(verdicts.map((verdict) => verdict.kind)).toEqual(['done', 'done']);
    expect((await rig.evidence(id)).filter((line) => line.startsWith('webhook'))).toHaveLength(1);
    expect(await rig.rules(id)).toEqual(['T17']);
    await finishEvent(rig.db.database, first.id, 'moved');
  }); // prettier-ignore

  it('shows what has waited for 15 minutes, and the age of the oldest', async () => {
    const gauges = startDatabaseGauges({
      sql: rig.db.as('payments_read'),
      log: createLogger({ level: 'silent', name: 'test' }),
    });
    await gauges.refresh();
    expect([await counted('webhook_parked'), await counted('webhook_oldest_seconds')]).toEqual([0, 0]);
    const body = eventBody('pay_nobody_knows');
    await rig.tell(body);
    await rig.db.query(`UPDATE webhook_inbox SET received_at = clock_timestamp() - interval '16 minutes'
      WHERE processed_at IS NULL`); // prettier-ignore
    expect(await gauges.refresh()).toBe(true);
    await gauges.stop();
    expect(await counted('webhook_parked')).toBe(1);
    expect(await counted('webhook_oldest_seconds')).toBeGreaterThan(900);
  });

  it('leaves nothing that the judge of all rows finds wrong', async () => {
    expect(await rig.breaches()).toEqual([]);
  });
});
