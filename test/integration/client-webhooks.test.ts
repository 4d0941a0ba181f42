import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseInstant, type Instant } from '../../src/domain/instant.js';
import { PAYMENT_STATES } from '../../src/domain/payment-state.js';
import { startDatabaseGauges } from '../../src/metrics/database-gauges.js';
import { metricsText } from '../../src/metrics/metrics.js';
import { createLogger } from '../../src/platform/logger.js';
import { ClientWebhookRig } from '../support/client-webhook-rig.js';
import { Latch } from '../support/tapped-database.js';
import { until } from '../support/until.js';
import type { Received } from '../support/webhook-receiver.js';

let rig: ClientWebhookRig;
beforeEach(async () => {
  rig = await ClientWebhookRig.start();
});
afterEach(() => rig.stop());

const versions = (events: readonly Received[]): readonly number[] => events.map((event) => event.version);

function hoursAgo(hours: number): Instant {
  const at = parseInstant(new Date(Date.now() - hours * 3_600_000).toISOString());
  if (at === null) throw new Error('a time of this machine is an instant');
  return at;
}

/** Payments whose versions did not arrive one after the other; a repeat of one that arrived is none. */
function outOfOrder(events: readonly Received[]): readonly string[] {
  const newest = new Map<string, number>();
  const wrong: string[] = [];
  for (const { paymentId, version } of events) {
    const last = newest.get(paymentId) ?? 0;
    if (version > last + 1) wrong.push(`${paymentId}: ${version} after ${last}`);
    newest.set(paymentId, Math.max(last, version));
  }
  return wrong;
}

describe('every transition', () => {
  it('is told to the tenant, whoever moved the payment, in order and signed', async () => {
    const tenant = await rig.tenant();
    const { id, secret } = await rig.endpoint(tenant, '/all');
    for (const state of PAYMENT_STATES) await rig.payment(tenant, state);
    const told = await rig.db.query(
      `SELECT payment_id, seq FROM payment_transition t WHERE NOT EXISTS (
         SELECT 1 FROM webhook_delivery d WHERE d.payment_id = t.payment_id AND d.version = t.seq)`,
    );
    expect(told).toEqual([]);

    rig.deliverer().deliverer.start();
    const rows = await rig.untilDone(id);
    const events = rig.receiver.at('/all');
    expect(rows.every((row) => row.result === 'delivered' && row.tries === 1)).toBe(true);
    expect(events).toHaveLength(rows.length);
    expect(outOfOrder(events)).toEqual([]);
    const hook = new Webhook(secret);
    for (const event of events) {
      expect(hook.verify(event.text, event.headers)).toEqual({
        id: event.id,
        type: expect.stringMatching(/^payment\.[a-z_]+$/) as string,
        occurred_at: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/) as string,
        payment_id: event.paymentId,
        version: event.version,
      });
      expect(Buffer.byteLength(event.text)).toBeLessThanOrEqual(20 * 1024);
    }
    expect(new Set(events.map((event) => event.id)).size).toBe(events.length);
  });

  it('goes to the endpoints of its own tenant, of the types that they ask for', async () => {
    const [mine, other] = [await rig.tenant(), await rig.tenant()];
    const all = await rig.endpoint(mine, '/mine');
    const some = await rig.endpoint(mine, '/some', { event_types: ['payment.succeeded'] });
    const foreign = await rig.endpoint(other, '/other');
    const payment = await rig.payment(mine, 'succeeded');
    rig.deliverer().deliverer.start();
    await rig.untilDone(all.id);
    await rig.untilDone(some.id);
    expect(versions(rig.receiver.at('/mine'))).toEqual([1, 2, 3]);
    expect(rig.receiver.at('/some').map((event) => [event.paymentId, event.version])).toEqual([[payment, 3]]);
    expect(await rig.rows(foreign.id)).toEqual([]);
    expect(rig.receiver.at('/other')).toEqual([]);
  });

  it('of a tenant without an active endpoint leaves nothing behind', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/off');
    await rig.endpoints.setStatus(rig.target(tenant, id), 'disabled');
    await rig.payment(tenant, 'succeeded');
    expect(await rig.rows(id)).toEqual([]);
  });
});

describe('an event that does not arrive', () => {
  it('holds back the later ones of its payment and no other payment, until it does', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    const stuck = await rig.payment(tenant, 'succeeded');
    const free = await rig.payment(tenant, 'succeeded');
    let fails = true;
    rig.receiver.react('/hooks', ({ paymentId, version }) =>
      paymentId === stuck && version === 2 && fails ? 503 : 204,
    );
    rig.deliverer().deliverer.start();
    await until('the other payment was told', () => versions(rig.receiver.at('/hooks').filter((e) => e.paymentId === free)), (seen) => seen.length === 3); // prettier-ignore
    const failed = await rig.untilCode(id, 'http_error');
    expect(failed).toMatchObject({ version: 2, tries: 1, last_http_status: 503, result: null });
    expect(failed.wait_s).toBeGreaterThan(4.4);
    expect(failed.wait_s).toBeLessThan(5.6);
    const ofStuck = () => versions(rig.receiver.at('/hooks').filter((event) => event.paymentId === stuck));
    expect(ofStuck()).toEqual([1, 2]);

    await rig.makeDue();
    await rig.untilCode(id, 'http_error', 2);
    expect(ofStuck()).toEqual([1, 2, 2]);
    fails = false;
    await rig.makeDue();
    await rig.untilDone(id);
    expect(ofStuck()).toEqual([1, 2, 2, 2, 3]);
    const second = rig.receiver.at('/hooks').filter((e) => e.paymentId === stuck && e.version === 2);
    expect(new Set(second.map((event) => event.id)).size).toBe(1);
  });

  it('is given up after ten tries, and the next one of its payment goes', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    const payment = await rig.payment(tenant, 'cancelled');
    rig.receiver.react('/hooks', ({ version }) => (version === 1 ? 500 : 204));
    rig.deliverer({ random: () => 0.5 }).deliverer.start();
    const waits: number[] = [];
    for (let tries = 1; tries < 10; tries++) {
      const row = await until('the try is recorded', () => rig.rows(id, payment), ([first]) => first?.tries === tries); // prettier-ignore
      waits.push(Math.round((row[0]?.wait_s ?? 0) / 5) * 5);
      await rig.makeDue();
    }
    const [first, next] = await rig.untilDone(id);
    expect(first).toMatchObject({ tries: 10, result: 'given_up', last_code: 'http_error' });
    expect(next).toMatchObject({ result: 'delivered' });
    expect(versions(rig.receiver.at('/hooks'))).toEqual([...Array<number>(10).fill(1), 2]);
    expect(waits).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
  });
});

describe('a deliverer that dies', () => {
  it('between sending and recording leaves the event to another, which sends it again under the same id', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    await rig.payment(tenant, 'cancelled');
    const dead = rig.deliverer();
    const frozen = new Latch();
    const reached = new Latch();
    dead.database.tap('webhook-delivery-delivered', async (run) => {
      // From here on this process does nothing more, but for what it was doing.
      dead.database.tap('webhook-delivery-take', async () => ({ rows: [], rowCount: 0 }));
      reached.open();
      await frozen.wait();
      return run();
    });
    dead.deliverer.start();
    await reached.wait();
    expect(versions(rig.receiver.at('/hooks'))).toEqual([1]);

    const other = rig.deliverer();
    other.deliverer.start();
    await rig.endHolds();
    await rig.untilDone(id);
    expect(versions(rig.receiver.at('/hooks'))).toEqual([1, 1, 2]);
    expect(new Set(rig.receiver.at('/hooks').map((event) => event.id)).size).toBe(2);
    // What the frozen one thinks it knows changes nothing any more.
    const before = await rig.rows(id);
    frozen.open();
    await dead.deliverer.stop();
    expect(await rig.rows(id)).toEqual(before);
    expect(before.map((row) => row.tries)).toEqual([1, 1]);
  });

  it('and one that goes on share the work: every event arrives, in order, though a third is refused', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    let asked = 0;
    rig.receiver.react('/hooks', () => (asked++ % 3 === 0 ? 500 : 204));
    const ids: string[] = [];
    for (let n = 0; n < 25; n++)
      ids.push(await rig.payment(tenant, n % 2 === 0 ? 'returned' : 'needs_review'));
    rig.deliverer().deliverer.start();
    rig.deliverer().deliverer.start();
    await until('every event arrived', async () => {
      await rig.makeDue();
      return rig.rows(id);
    }, (rows) => rows.every((row) => row.result === 'delivered')); // prettier-ignore
    const events = rig.receiver.at('/hooks');
    const arrived = new Set(events.map((event) => event.id));
    expect(arrived.size).toBe(ids.length * 4);
    expect(outOfOrder(events)).toEqual([]);
  });
});

describe('a signing secret', () => {
  it('that is replaced signs beside the new one until its time is over', async () => {
    const tenant = await rig.tenant();
    const { id, secret: old } = await rig.endpoint(tenant, '/hooks');
    const { secret: fresh, previous_secret_until: ends } = await rig.endpoints.rotate(
      rig.target(tenant, id),
      {},
    );
    expect(ends).not.toBeNull();
    await rig.payment(tenant, 'scheduled');
    rig.deliverer().deliverer.start();
    await rig.untilDone(id);
    const [both] = rig.receiver.at('/hooks');
    for (const secret of [old, fresh]) expect(() => new Webhook(secret).verify(both!.text, both!.headers)).not.toThrow(); // prettier-ignore

    await rig.db.query(
      `UPDATE webhook_endpoint SET previous_secret_until = clock_timestamp() WHERE id = $1`,
      [id],
    );
    await rig.payment(tenant, 'scheduled');
    await rig.untilDone(id);
    const last = rig.receiver.at('/hooks').at(-1)!;
    expect(() => new Webhook(fresh).verify(last.text, last.headers)).not.toThrow();
    expect(() => new Webhook(old).verify(last.text, last.headers)).toThrow();
  });

  it('survives a rotation that is repeated because its answer was lost', async () => {
    const tenant = await rig.tenant();
    const { id, secret: used } = await rig.endpoint(tenant, '/hooks');
    const lost = await rig.endpoints.rotate(rig.target(tenant, id), {});
    const fresh = await rig.endpoints.rotate(rig.target(tenant, id), {});
    expect(fresh.previous_secret_until).toBe(lost.previous_secret_until);
    await rig.payment(tenant, 'scheduled');
    rig.deliverer().deliverer.start();
    await rig.untilDone(id);
    const [event] = rig.receiver.at('/hooks');
    for (const secret of [used, fresh.secret]) expect(() => new Webhook(secret).verify(event!.text, event!.headers)).not.toThrow(); // prettier-ignore
    expect(() => new Webhook(lost.secret).verify(event!.text, event!.headers)).toThrow();
  });

  it('that leaked ends at once when it is replaced with 0 seconds', async () => {
    const tenant = await rig.tenant();
    const { id, secret: leaked } = await rig.endpoint(tenant, '/hooks');
    const { secret } = await rig.endpoints.rotate(rig.target(tenant, id), { previous_expires_in_seconds: 0 });
    await rig.payment(tenant, 'scheduled');
    rig.deliverer().deliverer.start();
    await rig.untilDone(id);
    const [event] = rig.receiver.at('/hooks');
    expect(() => new Webhook(secret).verify(event!.text, event!.headers)).not.toThrow();
    expect(() => new Webhook(leaked).verify(event!.text, event!.headers)).toThrow();
  });

  it('rests sealed for its endpoint: a row that was copied to another one signs nothing', async () => {
    const tenant = await rig.tenant();
    const [one, two] = [await rig.endpoint(tenant, '/one'), await rig.endpoint(tenant, '/two')];
    const rows = await rig.db.query<{ secret: Buffer }>(`SELECT secret FROM webhook_endpoint`);
    for (const row of rows) expect(row.secret.toString('latin1')).not.toContain('whsec_');
    await rig.db.query(
      `UPDATE webhook_endpoint SET secret = (SELECT secret FROM webhook_endpoint WHERE id = $1) WHERE id = $2`,
      [one.id, two.id],
    );
    await rig.payment(tenant, 'scheduled');
    rig.deliverer().deliverer.start();
    await rig.untilDone(one.id);
    await rig.untilCode(two.id, 'secret_unreadable');
    expect(rig.receiver.at('/two')).toEqual([]);
  });
});

describe('an endpoint', () => {
  it('where nothing arrives is disabled, keeps its queue, and is enabled and replayed without a gap', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    await expect(
      rig.endpoints.replay(rig.target(tenant, id), { since: hoursAgo(31 * 24) }),
    ).rejects.toMatchObject({
      code: 'replay_too_old',
    });
    rig.deliverer({ dead: { ms: 0, failures: 3 } }).deliverer.start();
    const arrived = await rig.payment(tenant, 'cancelled');
    await rig.untilDone(id);
    rig.receiver.react('/hooks', 500);
    const before = await rig.payment(tenant, 'cancelled');
    for (let tries = 1; tries <= 3; tries++) {
      await rig.untilCode(id, 'http_error', tries);
      await rig.makeDue();
    }
    await until('it is disabled', () => rig.status(id), ({ status }) => status === 'disabled'); // prettier-ignore
    expect(await rig.status(id)).toEqual({ status: 'disabled', reason: 'failing' });
    expect(rig.disabled).toEqual(['failing']);
    const meanwhile = await rig.payment(tenant, 'succeeded');
    expect(await rig.rows(id, meanwhile)).toEqual([]);

    rig.receiver.react('/hooks', 204);
    const tried = rig.receiver.at('/hooks').length;
    await rig.endpoints.setStatus(rig.target(tenant, id), 'active');
    await rig.endpoints.replay(rig.target(tenant, id), { since: hoursAgo(1) });
    await until('what was missed arrived', () => rig.receiver.at('/hooks').slice(tried), (events) => events.length >= 5); // prettier-ignore
    await rig.untilDone(id);
    const events = rig.receiver.at('/hooks').slice(tried);
    expect(versions(events.filter((event) => event.paymentId === before))).toEqual([1, 2]);
    expect(versions(events.filter((event) => event.paymentId === meanwhile))).toEqual([1, 2, 3]);
    expect(events.filter((event) => event.paymentId === arrived)).toEqual([]);
  });

  it('where something arrives now and then is not disabled', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    let asked = 0;
    rig.receiver.react('/hooks', () => (asked++ % 3 < 2 ? 500 : 204));
    rig.deliverer({ dead: { ms: 0, failures: 3 }, perEndpoint: 1 }).deliverer.start();
    for (let n = 0; n < 4; n++) await rig.payment(tenant, 'scheduled');
    await until('every event arrived', async () => {
      await rig.makeDue();
      return rig.rows(id);
    }, (rows) => rows.every((row) => row.result === 'delivered')); // prettier-ignore
    expect(asked).toBe(12);
    expect(await rig.status(id)).toEqual({ status: 'active', reason: null });
  });

  it('keeps its log for a month', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    const [old, young] = [await rig.payment(tenant, 'scheduled'), await rig.payment(tenant, 'scheduled')];
    const age = (payment: string, days: number) =>
      rig.db.query(
        `UPDATE webhook_delivery SET created_at = clock_timestamp() - make_interval(days => $2) WHERE payment_id = $1`,
        [payment, days],
      );
    await age(old, 32);
    await age(young, 30);
    rig.deliverer().deliverer.start();
    await until(
      'the old one is gone',
      () => rig.rows(id, old),
      (rows) => rows.length === 0,
    );
    expect(await rig.rows(id, young)).toHaveLength(1);
  });

  it('shows in the gauge how long its oldest event has been due, and nothing of one that is disabled', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    await rig.payment(tenant, 'scheduled');
    await rig.db.query(
      `UPDATE webhook_delivery SET next_try_at = clock_timestamp() - interval '100 seconds'`,
    );
    const log = createLogger({ level: 'silent', name: 'test' });
    const gauges = startDatabaseGauges({ sql: rig.db.as('payments_read'), log });
    const oldest = async (): Promise<number> => {
      expect(await gauges.refresh()).toBe(true);
      return Number(/^payments_webhook_out_oldest_seconds (\S+)$/m.exec(await metricsText())?.[1]);
    };
    expect(await oldest()).toBeGreaterThanOrEqual(100);
    await rig.endpoints.setStatus(rig.target(tenant, id), 'disabled');
    expect(await oldest()).toBe(0);
    await gauges.stop();
  });

  it('that answers 410 is disabled at once, and nothing more is sent', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/gone');
    await rig.payment(tenant, 'cancelled');
    rig.receiver.react('/gone', 410);
    rig.deliverer().deliverer.start();
    await until('it is disabled', () => rig.status(id), ({ status }) => status === 'disabled'); // prettier-ignore
    expect(await rig.status(id)).toEqual({ status: 'disabled', reason: 'gone' });
    expect(versions(rig.receiver.at('/gone'))).toEqual([1]);
    expect((await rig.rows(id)).map((row) => row.result)).toEqual([null, null]);
  });

  it('that never answers holds its own places and nobody else', async () => {
    const tenant = await rig.tenant();
    const slow = await rig.endpoint(tenant, '/slow');
    const quick = await rig.endpoint(tenant, '/quick');
    rig.receiver.react('/slow', () => undefined);
    for (let n = 0; n < 12; n++) await rig.payment(tenant, 'scheduled');
    rig.deliverer({ perEndpoint: 3, wholeMs: 60_000 }).deliverer.start();
    await rig.untilDone(quick.id);
    await until(
      'the slow one has its places full',
      () => rig.receiver.at('/slow').length,
      (n) => n === 3,
    );
    for (let n = 0; n < 3; n++) await rig.payment(tenant, 'scheduled');
    await rig.untilDone(quick.id);
    expect(rig.receiver.at('/quick')).toHaveLength(15);
    expect(rig.receiver.at('/slow')).toHaveLength(3);
    expect((await rig.rows(slow.id)).filter((row) => row.takes > 0)).toHaveLength(3);
    await rig.receiver.close();
  });

  it('that is deleted gets nothing more and keeps no secret', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks');
    await rig.payment(tenant, 'scheduled');
    await rig.endpoints.remove(rig.target(tenant, id));
    await expect(rig.endpoints.remove(rig.target(tenant, id))).rejects.toMatchObject({ code: 'not_found' });
    const [row] = await rig.db.query(`SELECT secret, previous_secret FROM webhook_endpoint WHERE id = $1`, [
      id,
    ]);
    expect(row).toEqual({ secret: null, previous_secret: null });
    rig.deliverer().deliverer.start();
    await until(
      'its queue is tidied away',
      () => rig.rows(id),
      (rows) => rows.length === 0,
    );
    expect(rig.receiver.received).toEqual([]);
  });
});

describe('a receiver', () => {
  it('that never answers is a failure after the time-out', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/silent');
    rig.receiver.react('/silent', () => undefined);
    await rig.payment(tenant, 'scheduled');
    rig.deliverer({ wholeMs: 200 }).deliverer.start();
    expect(await rig.untilCode(id, 'timed_out')).toMatchObject({ last_http_status: null, result: null });
  });

  it('that answers 5 MB has the event, and its answer is not read', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/chatty');
    let written = 0;
    let whole = false;
    rig.receiver.react('/chatty', (_event, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.on('error', () => undefined);
      const part = Buffer.alloc(64 * 1024, 'x');
      const write = (): void => {
        while (written < 5 * 1024 * 1024) {
          written += part.length;
          if (!response.write(part)) return void response.once('drain', write);
        }
        whole = true;
        response.end();
      };
      write();
      return undefined;
    });
    await rig.payment(tenant, 'scheduled');
    rig.deliverer().deliverer.start();
    expect(await rig.untilDone(id)).toMatchObject([{ result: 'delivered', last_http_status: 200 }]);
    expect(whole).toBe(false);
  });

  it('that redirects is not followed', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/moved');
    rig.receiver.react('/moved', (_event, response) => {
      response.writeHead(307, { location: rig.url('/elsewhere') }).end();
      return undefined;
    });
    await rig.payment(tenant, 'scheduled');
    rig.deliverer().deliverer.start();
    expect(await rig.untilCode(id, 'redirected')).toMatchObject({ last_http_status: 307, result: null });
    expect(rig.receiver.at('/elsewhere')).toEqual([]);
  });

  it('whose certificate is for another name gets nothing', async () => {
    const tenant = await rig.tenant();
    const { id } = await rig.endpoint(tenant, '/hooks', { host: 'elsewhere.example.com' });
    await rig.payment(tenant, 'scheduled');
    rig.deliverer().deliverer.start();
    await rig.untilCode(id, 'tls_failed');
    expect(rig.receiver.received).toEqual([]);
  });
});
