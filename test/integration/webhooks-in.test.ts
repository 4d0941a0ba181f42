import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_RAW_BODY_BYTES } from '../../src/http/body-parser.js';
import { counted, eventBody, newEventId, newSecret, signed, WebhookRig } from '../support/webhook-rig.js';

let rig: WebhookRig;
beforeAll(async () => {
  rig = await WebhookRig.start();
});
afterAll(() => rig.stop());

const rows = async (): Promise<number> =>
  (await rig.db.query<{ n: number }>(`SELECT count(*)::integer AS n FROM webhook_inbox`))[0]?.n ?? -1;

const received = (result: string, provider = 'simulated'): Promise<number> =>
  counted(`webhook_in_total{provider="${provider}",result="${result}"}`);

describe('an event with a right signature', () => {
  it('is stored, then answered 204; what it and its body say is sealed at rest', async () => {
    const id = newEventId();
    const paymentId = await rig.payment('submitted');
    await rig.tell(eventBody(paymentId, { id, more: { secret_word: 'acct_test-planted' } }));
    const [stored] = await rig.db.query<Record<string, unknown>>(
      `SELECT provider, account, type, processed_at, payment_id, tries FROM webhook_inbox WHERE event_id = $1`,
      [id],
    );
    expect(stored).toEqual({
      provider: 'simulated',
      account: 'test',
      type: 'payout.succeeded',
      processed_at: null,
      payment_id: null,
      tries: 0,
    });
    const [clear] = await rig.db.query<{ clear: boolean }>(
      `SELECT (i.*)::text || encode(event, 'escape') || encode(body, 'escape') LIKE '%acct_test%' AS clear
         FROM webhook_inbox i WHERE event_id = $1`,
      [id],
    );
    expect(clear).toEqual({ clear: false });
  });

  it('may be signed with either of two secrets', async () => {
    for (const secret of [rig.secrets.new, rig.secrets.old]) {
      const body = eventBody('pay_any');
      expect((await rig.post(body, signed(body, secret))).status).toBe(204);
    }
  });

  it('that comes again, for days, is answered 204 and stores nothing new (PR-02)', async () => {
    const body = eventBody('pay_again');
    await rig.tell(body);
    const before = [await rows(), await received('duplicate')];
    await Promise.all(Array.from({ length: 20 }, () => rig.tell(body)));
    expect([await rows(), await received('duplicate')]).toEqual([before[0], (before[1] ?? NaN) + 20]);
  });

  it('that comes many times at once is stored once (PR-02)', async () => {
    const body = eventBody('pay_at_once');
    const before = await rows();
    await Promise.all(Array.from({ length: 30 }, () => rig.tell(body)));
    expect(await rows()).toBe(before + 1);
  });

  it('has an id of its own in each account: two providers may use one', async () => {
    const body = eventBody('pay_two_providers');
    const before = await rows();
    await rig.tell(body, rig.a.name);
    await rig.tell(body, rig.b.name);
    expect(await rows()).toBe(before + 2);
  });

  it('is kept for ever: its row cannot be deleted', async () => {
    await expect(rig.db.query(`DELETE FROM webhook_inbox`)).rejects.toThrow(/refused/);
    await expect(rig.db.query(`TRUNCATE webhook_inbox`)).rejects.toThrow(/refused/);
  });
});

describe('a request that is not a rightly signed event of our time', () => {
  const body = eventBody('pay_refused');
  const now = Date.now();
  interface Refused {
    readonly name: string;
    readonly headers: () => Record<string, string>;
    readonly body?: string;
    readonly reason: string;
  }
  const REFUSED: readonly Refused[] = [
    { name: 'unsigned', headers: () => ({}), reason: 'unsigned' },
    { name: 'forged', headers: () => signed(body, newSecret()), reason: 'forged' },
    { name: 'altered', headers: () => signed(body, rig.secrets.new), body: `${body} `, reason: 'forged' },
    { name: 'too old', headers: () => signed(body, rig.secrets.new, now - 600_000), reason: 'too_old' },
    { name: 'from the future', headers: () => signed(body, rig.secrets.new, now + 600_000), reason: 'from_future' },
    { name: 'empty', headers: () => ({}), body: '', reason: 'unsigned' },
  ]; // prettier-ignore

  it.each(REFUSED)('($name) is 401, stores nothing, and is counted by its reason', async (refused) => {
    const before = [await rows(), await received(refused.reason)];
    const answer = await rig.post(refused.body ?? body, refused.headers());
    expect([answer.status, answer.code]).toEqual([401, 'signature_invalid']);
    expect([await rows(), await received(refused.reason)]).toEqual([before[0], (before[1] ?? NaN) + 1]);
  });

  it('gets one body for every reason', async () => {
    const texts = new Set<string>();
    for (const refused of REFUSED) {
      const { text } = await rig.post(refused.body ?? body, refused.headers());
      const { request_id: _id, instance: _instance, ...said } = JSON.parse(text) as Record<string, unknown>;
      texts.add(JSON.stringify(said));
    }
    expect(texts.size).toBe(1);
  });

  it.each([
    ['no JSON', 'reticulating'],
    ['JSON that is no event', '{"object":"payout"}'],
    ['an event without an id', eventBody('pay_x', { more: { id: null } })],
    ['an event of the live world', eventBody('pay_x', { more: { livemode: true } })],
  ])('but is rightly signed (%s) is 400, and stores nothing', async (_name, text) => {
    const before = await rows();
    const answer = await rig.post(text, signed(text, rig.secrets.new));
    expect([answer.status, answer.code]).toEqual([400, 'event_unreadable']);
    expect(await rows()).toBe(before);
  });

  it('of more than 64 KiB is 413, whoever signed it, and is counted', async () => {
    const before = [await rows(), await received('too_large')];
    for (const bytes of [MAX_RAW_BODY_BYTES + 1, 1024 * 1024]) {
      const large = eventBody('pay_large', { more: { padding: 'x'.repeat(bytes) } });
      const answer = await rig.post(large, signed(large, rig.secrets.new));
      expect([answer.status, answer.code]).toEqual([413, 'payload_too_large']);
    }
    expect([await rows(), await received('too_large')]).toEqual([before[0], (before[1] ?? NaN) + 2]);
  });

  it('of just 64 KiB is an event as any other: the limit of other routes is not this one', async () => {
    const short = eventBody('pay_64', { more: { padding: '' } });
    const text = short.replace(
      '"padding":""',
      `"padding":"${'x'.repeat(MAX_RAW_BODY_BYTES - Buffer.byteLength(short))}"`,
    );
    expect(Buffer.byteLength(text)).toBe(MAX_RAW_BODY_BYTES);
    await rig.tell(text);
  });

  it('to a provider that is not configured is 404', async () => {
    const before = await received('unknown_provider', 'unknown');
    for (const provider of ['nobody', 'simulated_t', '..%2F', '__proto__']) {
      const answer = await rig.post(body, signed(body, rig.secrets.new), provider);
      expect([provider, answer.status, answer.code]).toEqual([provider, 404, 'not_found']);
    }
    expect(await received('unknown_provider', 'unknown')).toBe(before + 4);
  });
});
