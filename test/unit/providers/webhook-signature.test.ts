import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkStandardWebhook, checkTimestampedSignature } from '../../../src/providers/webhook-signature.js';

const NOW_S = 1_800_000_000;
const NOW_MS = NOW_S * 1000;
const RAW = Buffer.from('{"id":"evt_1","amount":1250}');
const HEADER = 'stripe-signature';

function hex(secret: string, seconds: number | string, raw = RAW): string {
  return createHmac('sha256', secret).update(`${seconds}.`).update(raw).digest('hex');
}
function timestamped(header: string | string[] | undefined, secrets = ['whsec_new', 'whsec_old'], raw = RAW) {
  return checkTimestampedSignature(HEADER, { raw, headers: { [HEADER]: header }, secrets, nowMs: NOW_MS });
}
const signed = (secret: string, seconds: number = NOW_S): string => `t=${seconds},v1=${hex(secret, seconds)}`;

describe('a signature with a time-stamp', () => {
  it('is right under either of two secrets', () => {
    expect(timestamped(signed('whsec_new'))).toBeNull();
    expect(timestamped(signed('whsec_old'))).toBeNull();
    expect(timestamped(signed('whsec_third'))).toBe('forged');
  });

  it('may stand beside wrong ones and other schemes, as while a secret is replaced', () => {
    const header = `t=${NOW_S}, v1=${'0'.repeat(64)}, v0=abc, v1=${hex('whsec_old', NOW_S)}`;
    expect(timestamped(header)).toBeNull();
  });

  it.each<[string, string | string[] | undefined]>([
    ['no header', undefined],
    ['an empty one', ''],
    ['one without a time', `v1=${hex('whsec_new', NOW_S)}`],
    ['one without a signature of the scheme', `t=${NOW_S},v0=${hex('whsec_new', NOW_S)}`],
    ['a time that is no number', `t=now,v1=${hex('whsec_new', 'now')}`],
    ['two headers', [signed('whsec_new'), signed('whsec_new')]],
  ])('is missing: %s', (_title, header) => {
    expect(timestamped(header)).toBe('unsigned');
  });

  it.each<[string, string]>([
    ['of half the length', `t=${NOW_S},v1=${hex('whsec_new', NOW_S).slice(0, 32)}`],
    ['that is empty', `t=${NOW_S},v1=`],
    ['that is no hex', `t=${NOW_S},v1=${'zz'.repeat(32)}`],
    ['of another time', `t=${NOW_S},v1=${hex('whsec_new', NOW_S - 1)}`],
    ['after sixteen others', `t=${NOW_S}${',v1=00'.repeat(16)},v1=${hex('whsec_new', NOW_S)}`],
  ])('is forged: one %s', (_title, header) => {
    expect(timestamped(header)).toBe('forged');
  });

  it('is forged when the body differs in one byte, or in white space alone', () => {
    expect(timestamped(signed('whsec_new'), undefined, Buffer.from('{"id":"evt_1","amount":1251}'))).toBe(
      'forged',
    );
    expect(timestamped(signed('whsec_new'), undefined, Buffer.from('{"id":"evt_1", "amount":1250}'))).toBe(
      'forged',
    );
  });

  it('believes nothing without a secret, and nothing under an empty one', () => {
    expect(timestamped(signed('whsec_new'), [])).toBe('forged');
    expect(timestamped(`t=${NOW_S},v1=${hex('', NOW_S)}`, ['', 'whsec_new'])).toBe('forged');
  });

  it.each<[number, string | null]>([
    [-300, null],
    [-301, 'too_old'],
    [60, null],
    [61, 'from_future'],
  ])('made %d s from now: %s', (seconds, refusal) => {
    expect(timestamped(signed('whsec_new', NOW_S + seconds))).toBe(refusal);
  });

  it('is forged first and old second: a forger learns nothing about our clock', () => {
    expect(timestamped(signed('whsec_third', NOW_S - 9_999))).toBe('forged');
  });

  it('is checked without a throw, and never right by chance, whatever the header holds', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string(), { maxLength: 3 }), (header, secrets) => {
        expect(['unsigned', 'forged']).toContain(timestamped(header, secrets));
        expect(['unsigned', 'forged']).toContain(timestamped(`t=${NOW_S},v1=${header}`, secrets));
      }),
    );
  });
});

describe('a Standard Webhooks signature', () => {
  // The example of the specification's own libraries.
  const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
  const SECONDS = 1_614_265_330;
  const PAYLOAD = Buffer.from('{"test": 2432232314}');
  const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  function standard(changes: Record<string, string | undefined> = {}, secrets = [SECRET], raw = PAYLOAD) {
    const headers = {
      'webhook-id': ID,
      'webhook-timestamp': String(SECONDS),
      'webhook-signature': SIGNATURE,
    };
    return checkStandardWebhook({
      raw,
      headers: { ...headers, ...changes },
      secrets,
      nowMs: SECONDS * 1000,
    });
  }

  it('agrees with the example of the specification, with and without the prefix of the secret', () => {
    expect(standard()).toBeNull();
    expect(standard({}, [SECRET.slice('whsec_'.length)])).toBeNull();
    expect(standard({}, ['whsec_b3RoZXI=', SECRET])).toBeNull();
    expect(standard({ 'webhook-signature': `v1,AAAA v2,xyz ${SIGNATURE}` })).toBeNull();
  });

  it.each<[string, Record<string, string | undefined>]>([
    ['no id', { 'webhook-id': undefined }],
    ['no time', { 'webhook-timestamp': undefined }],
    ['a time that is no number', { 'webhook-timestamp': 'soon' }],
    ['no signature', { 'webhook-signature': undefined }],
    ['only another scheme', { 'webhook-signature': `v1a,${SIGNATURE.slice(3)}` }],
  ])('is missing: %s', (_title, changes) => {
    expect(standard(changes)).toBe('unsigned');
  });

  it('is forged for another id, time, body or secret', () => {
    expect(standard({ 'webhook-id': `${ID}x` })).toBe('forged');
    expect(standard({ 'webhook-timestamp': String(SECONDS + 1) })).toBe('forged');
    expect(standard({}, [SECRET], Buffer.from('{"test": 2432232315}'))).toBe('forged');
    expect(standard({}, ['whsec_b3RoZXI='])).toBe('forged');
    expect(standard({}, [])).toBe('forged');
  });

  it.each<[number, string | null]>([
    [300_000, null],
    [300_001, 'too_old'],
    [-60_000, null],
    [-60_001, 'from_future'],
  ])('read %d ms after it was made: %s', (agoMs, refusal) => {
    const headers = {
      'webhook-id': ID,
      'webhook-timestamp': String(SECONDS),
      'webhook-signature': SIGNATURE,
    };
    const request = { raw: PAYLOAD, headers, secrets: [SECRET], nowMs: SECONDS * 1000 + agoMs };
    expect(checkStandardWebhook(request)).toBe(refusal);
  });

  it('believes nothing under a secret that holds no bytes', () => {
    const empty = createHmac('sha256', '').update(`${ID}.${SECONDS}.`).update(PAYLOAD).digest('base64');
    for (const secret of ['', 'whsec_', '!!!']) {
      expect(standard({ 'webhook-signature': `v1,${empty}` }, [secret])).toBe('forged');
    }
  });
});
