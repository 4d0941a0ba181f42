import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { newSecret, signatureHeaders } from '../../../../src/webhooks/outgoing/event-signature.js';
import { EVENT_TYPES, eventBody, eventId, readEventId } from '../../../../src/webhooks/outgoing/event.js';
import { MOST_TRIES, waitAfter } from '../../../../src/webhooks/outgoing/retry-schedule.js';

const EVENT = {
  paymentId: 'pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
  version: 12,
  state: 'needs_review',
  occurredAt: '2026-12-24 09:00:00.123456+00',
} as const;

describe('the signature of an event', () => {
  const id = eventId(EVENT);
  const body = eventBody(EVENT);

  it('is accepted by an implementation of Standard Webhooks that is not ours', () => {
    const secret = newSecret();
    const headers = signatureHeaders({ id, nowMs: Date.now(), body }, [secret]);
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
  });

  it('is made with both secrets, so that a receiver with either one verifies', () => {
    const [fresh, old, foreign] = [newSecret(), newSecret(), newSecret()];
    const headers = signatureHeaders({ id, nowMs: Date.now(), body }, [fresh, old]);
    expect(headers['webhook-signature'].split(' ')).toHaveLength(2);
    for (const secret of [fresh, old]) expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
    expect(() => new Webhook(foreign).verify(body, headers)).toThrow();
  });

  it('covers id, time and body', () => {
    const secret = newSecret();
    const headers = signatureHeaders({ id, nowMs: Date.now(), body }, [secret]);
    const hook = new Webhook(secret);
    expect(() => hook.verify(body.replace('needs_review', 'succeeded'), headers)).toThrow();
    expect(() => hook.verify(body, { ...headers, 'webhook-id': `${id}1` })).toThrow();
    const later = String(Number(headers['webhook-timestamp']) + 1);
    expect(() => hook.verify(body, { ...headers, 'webhook-timestamp': later })).toThrow();
  });

  it('is refused for a secret that is none', () => {
    expect(() => signatureHeaders({ id, nowMs: 0, body }, ['whsec_short'])).toThrow(/form/);
  });
});

describe('an event', () => {
  it('is thin: what happened to which payment, and nothing of its money', () => {
    expect(JSON.parse(eventBody(EVENT))).toEqual({
      id: 'evt_ps5rxd2c33sdjy3m5vexukzaewrunyqk_12',
      type: 'payment.needs_review',
      occurred_at: '2026-12-24T09:00:00.123456Z',
      payment_id: EVENT.paymentId,
      version: 12,
    });
    expect(EVENT_TYPES).toContain('payment.returned');
  });

  it('has an id that names its transition, and only ids of that form are read', () => {
    expect(readEventId(eventId(EVENT))).toEqual({ paymentId: EVENT.paymentId, version: 12 });
    const id = eventId(EVENT);
    for (const text of [
      '',
      'evt_',
      id.toUpperCase(),
      `${id}x`,
      id.replace('_12', '_0'),
      id.replace('_12', ''),
    ]) {
      expect([text, readEventId(text)]).toEqual([text, null]);
    }
  });
});

describe('the schedule of retries', () => {
  it('goes from 5 s over 75 h in ten tries, then gives up', () => {
    const middle = Array.from({ length: MOST_TRIES }, (_, n) => waitAfter(n + 1, 0.5));
    expect(middle[0]).toBe(5_000);
    expect(middle.at(-1)).toBeNull();
    const hours = middle.reduce<number>((sum, each) => sum + (each ?? 0), 0) / 3_600_000;
    expect(hours).toBeGreaterThan(75);
    expect(hours).toBeLessThan(76);
    expect(MOST_TRIES).toBe(10);
  });

  it('leaves a tenth either way to chance', () => {
    expect(waitAfter(1, 0)).toBe(4_500);
    expect(waitAfter(1, 0.999_999)).toBe(5_500);
  });
});
