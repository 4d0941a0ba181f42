import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RESULT_CLASSES } from '../../../../src/domain/provider-outcome.js';
import type { ResultClass } from '../../../../src/domain/provider-outcome.js';
import type { Exchange, ExchangeFault } from '../../../../src/providers/simulated/simulated.client.js';
import { mapList, mapRead, mapWrite } from '../../../../src/providers/simulated/simulated.mapping.js';
import type { CallKind, Expected } from '../../../../src/providers/simulated/simulated.mapping.js';

const EXPECTED: Expected = {
  amountMinor: 1250n,
  currency: 'EUR',
  destination: 'acct_dest',
  reference: 'pay_a/1',
  providerRef: null,
};
const PAYOUT = {
  id: 'po_0123456789abcdef',
  object: 'payout',
  livemode: false,
  amount: 1250,
  currency: 'EUR',
  destination: 'acct_dest',
  reference: 'pay_a/1',
  description: null,
  client_reference: null,
  status: 'succeeded',
  failure_code: null,
  created: 1_800_000_000,
};
const RECEIVED_AT_MS = Date.parse('2026-10-21T07:28:00Z');

function answered(status: number, body: unknown, headers: Record<string, string> = {}): Exchange {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = { status, headers, body: text, receivedAtMs: RECEIVED_AT_MS };
  return { bytesSent: true, fault: null, response };
}
function broken(fault: ExchangeFault, bytesSent: boolean): Exchange {
  return { bytesSent, fault, response: null };
}
const error = (code: string): unknown => ({ error: { type: 'invalid_request_error', code, message: 'No.' } });
const payout = (changes: object): unknown => ({ ...PAYOUT, ...changes });
const failed = (failureCode: string | null): unknown =>
  payout({ status: 'failed', failure_code: failureCode });

describe('what a writing call came to', () => {
  it.each<[string, Exchange, ResultClass, string]>([
    ['a refused connection', broken('connect_refused', false), 'not_sent', 'connect_refused'],
    ['an unknown host', broken('dns', false), 'not_sent', 'dns'],
    ['a connect time-out', broken('connect_timeout', false), 'not_sent', 'connect_timeout'],
    ['a lease that was lost before the first byte', broken('lease_lost', false), 'not_sent', 'lease_lost'],
    ['a deadline before the first byte', broken('deadline', false), 'not_sent', 'deadline'],
    ['DC-01: a deadline after the first byte', broken('deadline', true), 'ambiguous', 'deadline'],
    ['UO-03: a reset after the first byte', broken('reset', true), 'ambiguous', 'reset'],
    ['TP-03: a body without end', broken('body_too_large', true), 'ambiguous', 'body_too_large'],
    ['no HTTP', broken('unreadable', true), 'ambiguous', 'unreadable'],

    ['a payout that is ours', answered(200, PAYOUT), 'accepted', 'succeeded'],
    ['one that is on its way', answered(201, payout({ status: 'pending' })), 'accepted', 'pending'],
    ['AM-01: another amount', answered(200, payout({ amount: 1251 })), 'key_mismatch', 'other_amount'],
    ['another currency', answered(200, payout({ currency: 'USD' })), 'key_mismatch', 'other_currency'],
    ['another letter case', answered(200, payout({ currency: 'eur' })), 'key_mismatch', 'other_currency'],
    ['another destination', answered(200, payout({ destination: 'x' })), 'key_mismatch', 'other_destination'],
    ['another payment', answered(200, payout({ reference: 'pay_b/1' })), 'key_mismatch', 'other_reference'],
    [
      'another generation',
      answered(200, payout({ reference: 'pay_a/2' })),
      'key_mismatch',
      'other_reference',
    ],
    [
      'another amount of a failed payout',
      answered(200, { ...(failed('card_declined') as object), amount: 1 }),
      'key_mismatch',
      'other_amount',
    ],
    ['a listed failure', answered(200, failed('destination_closed')), 'rejected', 'destination_closed'],
    [
      'a failure for funds',
      answered(200, failed('insufficient_funds')),
      'rejected_funds',
      'insufficient_funds',
    ],
    ['a failure that is not listed', answered(200, failed('bad_mood')), 'ambiguous', 'unknown_failure'],
    ['a failure named like a built-in', answered(200, failed('constructor')), 'ambiguous', 'unknown_failure'],
    ['a failure without a reason', answered(200, failed(null)), 'ambiguous', 'unknown_failure'],
    ['UO-01: an unknown word', answered(200, payout({ status: 'done' })), 'ambiguous', 'unknown_status'],
    [
      'a word that belongs to two phases',
      answered(200, payout({ status: 'requires_commit' })),
      'ambiguous',
      'unexpected_status',
    ],
    ['a payout in another 2xx', answered(202, PAYOUT), 'ambiguous', 'unrecognised_answer'],
    ['a payout in a 500', answered(500, PAYOUT), 'ambiguous', 'http_5xx'],
    ['a payout in a 404', answered(404, PAYOUT), 'ambiguous', 'http_4xx'],
    [
      'another kind of object',
      answered(200, payout({ object: 'refund' })),
      'ambiguous',
      'unrecognised_answer',
    ],
    ['another id prefix', answered(200, payout({ id: 'tr_0123456789' })), 'ambiguous', 'unrecognised_answer'],
    ['a live object', answered(200, payout({ livemode: true })), 'ambiguous', 'unrecognised_answer'],
    [
      'an object without a live flag',
      answered(200, payout({ livemode: undefined })),
      'ambiguous',
      'unrecognised_answer',
    ],
    ['AM-02: a text amount', answered(200, payout({ amount: '1250' })), 'ambiguous', 'unrecognised_answer'],
    ['an amount of 1250.0', answered(200, rawAmount('1250.0')), 'ambiguous', 'unrecognised_answer'],
    ['an amount of 1.25e3', answered(200, rawAmount('1.25e3')), 'ambiguous', 'unrecognised_answer'],
    [
      'an amount just off in the 20th digit',
      answered(200, rawAmount('1250.0000000000000000001')),
      'ambiguous',
      'unrecognised_answer',
    ],
    ['UO-01: an empty body', answered(200, ''), 'ambiguous', 'unrecognised_answer'],
    [
      'UO-01: half a body',
      answered(200, JSON.stringify(PAYOUT).slice(0, 60)),
      'ambiguous',
      'unrecognised_answer',
    ],
    ['null', answered(200, 'null'), 'ambiguous', 'unrecognised_answer'],
    ['an error in a 200', answered(200, error('card_declined')), 'ambiguous', 'unrecognised_answer'],

    ['a decline', answered(402, error('card_declined')), 'rejected', 'card_declined'],
    ['missing funds', answered(402, error('insufficient_funds')), 'rejected_funds', 'insufficient_funds'],
    ['a bad parameter', answered(400, error('parameter_invalid')), 'rejected', 'parameter_invalid'],
    ['a decline under another status', answered(400, error('card_declined')), 'ambiguous', 'http_4xx'],
    ['a refusal that is not listed', answered(402, error('bad_mood')), 'ambiguous', 'http_4xx'],
    ['a 402 without the error form', answered(402, { code: 'card_declined' }), 'ambiguous', 'http_4xx'],
    ['an error without a type', answered(402, { error: { code: 'card_declined' } }), 'ambiguous', 'http_4xx'],
    ['a 404 without the error form', answered(404, {}), 'ambiguous', 'http_4xx'],
    ['a used key', answered(400, error('idempotency_key_reused')), 'key_mismatch', 'idempotency_key_reused'],
    ['a busy key', answered(409, error('idempotency_key_in_use')), 'in_flight', 'idempotency_key_in_use'],
    ['a 409 of another kind', answered(409, error('conflict')), 'ambiguous', 'http_4xx'],
    ['BK-02: a documented 429', answered(429, error('rate_limited')), 'throttled', 'rate_limited'],
    ['a 429 of somebody else', answered(429, 'slow down'), 'ambiguous', 'http_4xx'],
    [
      'a 429 that is a stored answer',
      answered(429, error('rate_limited'), REPLAYED()),
      'ambiguous',
      'http_4xx',
    ],
    ['an unknown key', answered(401, error('invalid_api_key')), 'config', 'invalid_api_key'],
    ['a missing permission', answered(403, error('permission_denied')), 'config', 'permission_denied'],
    ['a 403 of a firewall', answered(403, '<html>'), 'ambiguous', 'http_4xx'],
    ['a redirect', answered(307, ''), 'ambiguous', 'http_3xx'],
    ['a 408', answered(408, ''), 'ambiguous', 'http_4xx'],
    ['UO-01: a 502 in HTML', answered(502, '<html>'), 'ambiguous', 'http_5xx'],
    ['a 500', answered(500, error('internal_error')), 'ambiguous', 'http_5xx'],
    ['a decline in a 500', answered(500, error('card_declined')), 'ambiguous', 'http_5xx'],
    [
      'a 500 that is a stored answer',
      answered(500, error('internal_error'), REPLAYED()),
      'ambiguous',
      'stored_error',
    ],
  ])('%s', (_title, exchange, resultClass, code) => {
    const result = mapWrite(exchange, EXPECTED, 'move');
    expect([result.class, result.code]).toEqual([resultClass, code]);
  });

  it('says what was seen: ids, status, money, replay', () => {
    const headers = { 'request-id': 'req_1', 'idempotent-replayed': 'true' };
    expect(mapWrite(answered(200, PAYOUT, headers), EXPECTED, 'move')).toEqual({
      class: 'accepted',
      status: 'succeeded',
      code: 'succeeded',
      providerRef: PAYOUT.id,
      requestId: 'req_1',
      httpStatus: 200,
      replayed: true,
      bytesSent: true,
      observed: { amountMinor: 1250n, currency: 'EUR', destination: 'acct_dest' },
      retryAfterMs: null,
      foreignBody: null,
    });
  });

  it('shows the money of a payout that is not ours', () => {
    const { observed, providerRef } = mapWrite(answered(200, payout({ amount: 7 })), EXPECTED, 'move');
    expect([observed.amountMinor, providerRef]).toEqual([7n, PAYOUT.id]);
  });

  it.each<[string, Record<string, string>, number | null]>([
    ['seconds', { 'retry-after': '60' }, 60_000],
    ['zero', { 'retry-after': '0' }, 0],
    ['a date, by the Date of the answer', dates('07:28:30', '07:28:00'), 30_000],
    ['a date that has passed', dates('07:27:00', '07:28:00'), 0],
    ['a date alone, by our clock', { 'retry-after': 'Wed, 21 Oct 2026 07:28:10 GMT' }, 10_000],
    ['nothing', {}, null],
    ['a word', { 'retry-after': 'soon' }, null],
    ['a negative number', { 'retry-after': '-5' }, null],
    ['a fraction', { 'retry-after': '1.5' }, null],
  ])('BK-02: Retry-After as %s', (_title, headers, retryAfterMs) => {
    const result = mapWrite(answered(429, error('rate_limited'), headers), EXPECTED, 'move');
    expect(result.retryAfterMs).toBe(retryAfterMs);
  });

  it.each<[CallKind, string, ResultClass]>([
    ['create', 'requires_commit', 'accepted'],
    ['create', 'succeeded', 'ambiguous'],
    ['create', 'pending', 'ambiguous'],
    ['create', 'cancelled', 'ambiguous'],
    ['commit', 'requires_commit', 'ambiguous'],
    ['commit', 'succeeded', 'accepted'],
    ['commit', 'pending', 'accepted'],
    ['commit', 'cancelled', 'rejected'],
    ['cancel', 'cancelled', 'accepted'],
    ['cancel', 'requires_commit', 'ambiguous'],
    ['cancel', 'succeeded', 'rejected'],
    ['cancel', 'pending', 'rejected'],
    ['cancel', 'failed', 'rejected'],
    ['cancel', 'done', 'ambiguous'],
    ['move', 'cancelled', 'ambiguous'],
  ])('in two phases, %s that shows %s is %s', (call, status, resultClass) => {
    expect(mapWrite(answered(200, payout({ status })), EXPECTED, call).class).toBe(resultClass);
  });

  it.each<CallKind>(['commit', 'cancel'])('a %s that shows another payout is a mismatch', (call) => {
    const expected = { ...EXPECTED, providerRef: 'po_otherotherother' };
    expect(mapWrite(answered(200, PAYOUT), expected, call).code).toBe('other_object');
  });

  it('a created payout is inert, and a stopped one failed: neither says that money moved', () => {
    const created = answered(201, payout({ status: 'requires_commit' }));
    expect(mapWrite(created, EXPECTED, 'create')).toMatchObject({ class: 'accepted', status: 'inert' });
    const stopped = answered(200, payout({ status: 'cancelled' }));
    expect(mapWrite(stopped, EXPECTED, 'cancel')).toMatchObject({
      class: 'accepted',
      status: 'failed',
      code: 'cancelled',
    });
    const released = answered(200, PAYOUT);
    expect(mapWrite(released, EXPECTED, 'cancel')).toMatchObject({
      class: 'rejected',
      status: 'succeeded',
      code: 'already_released',
    });
  });

  it('a refused cancel proves nothing about the money', () => {
    for (const code of ['card_declined', 'insufficient_funds']) {
      expect(mapWrite(answered(402, error(code)), EXPECTED, 'cancel').class).toBe('ambiguous');
    }
  });

  it('keeps the first 4 KiB of what it did not understand, and of nothing else', () => {
    const page = `<html>${'x'.repeat(5_000_000)}`;
    expect(mapWrite(answered(502, page), EXPECTED, 'move').foreignBody).toBe(page.slice(0, 4_096));
    expect(mapWrite(answered(200, ''), EXPECTED, 'move').foreignBody).toBe('');
    const endless: Exchange = { bytesSent: true, fault: 'body_too_large', response: null, beginning: page };
    expect(mapWrite(endless, EXPECTED, 'move').foreignBody).toBe(page.slice(0, 4_096));
    const understood = [answered(200, PAYOUT), answered(402, error('card_declined')), broken('reset', true)];
    for (const exchange of understood) {
      expect(mapWrite(exchange, EXPECTED, 'move').foreignBody).toBeNull();
    }
  });
});

describe('what a lookup says', () => {
  const list = (data: unknown[], hasMore: unknown = false): unknown => ({
    object: 'list',
    data,
    has_more: hasMore,
  });
  const inert = payout({ status: 'requires_commit', id: 'po_inertinert' });
  const stopped = payout({ status: 'cancelled', id: 'po_stoppedstopped' });

  it.each<[string, Exchange, string]>([
    ['an empty list', answered(200, list([])), 'absent'],
    ['our payout', answered(200, list([PAYOUT])), 'found'],
    ['our failed payout', answered(200, list([failed('card_declined')])), 'found'],
    ['AM-01: a payout with another amount', answered(200, list([payout({ amount: 1 })])), 'found_other'],
    ['a payout of another payment', answered(200, list([payout({ reference: 'pay_b/1' })])), 'found_other'],
    ['two payouts', answered(200, list([PAYOUT, PAYOUT])), 'found_many'],
    ['more than one page', answered(200, list([PAYOUT], true)), 'found_many'],
    ['one inert payout', answered(200, list([inert])), 'found'],
    ['an inert one beside a released one', answered(200, list([inert, PAYOUT])), 'found'],
    ['several inert ones', answered(200, list([inert, inert])), 'cannot_tell'],
    ['a stopped one', answered(200, list([payout({ status: 'cancelled' })])), 'found'],
    ['a stopped one beside a released one', answered(200, list([PAYOUT, stopped])), 'found'],
    ['a stopped one beside an inert one', answered(200, list([inert, stopped])), 'cannot_tell'],
    ['a payout with an unknown status', answered(200, list([payout({ status: 'done' })])), 'cannot_tell'],
    ['something that is no payout', answered(200, list([PAYOUT, {}])), 'cannot_tell'],
    ['a list that does not say whether it ends', answered(200, list([], null)), 'cannot_tell'],
    ['an empty list in a 206', answered(206, list([])), 'cannot_tell'],
    ['a bare array', answered(200, []), 'cannot_tell'],
    ['nothing', answered(200, ''), 'cannot_tell'],
    ['UO-02: a 404', answered(404, error('payout_not_found')), 'cannot_tell'],
    ['UO-02: a 403', answered(403, error('permission_denied')), 'cannot_tell'],
    ['a 500', answered(500, error('internal_error')), 'cannot_tell'],
    ['a broken call', broken('reset', true), 'cannot_tell'],
  ])('by reference: %s', (_title, exchange, kind) => {
    expect(mapList(exchange, EXPECTED).kind).toBe(kind);
  });

  it('an inert or stopped payout is found as such, and absence says which way it was told', () => {
    expect(mapList(answered(200, list([inert])), EXPECTED)).toMatchObject({ result: { status: 'inert' } });
    expect(mapList(answered(200, list([stopped])), EXPECTED)).toMatchObject({
      result: { class: 'rejected', status: 'failed', code: 'cancelled' },
    });
    expect(mapList(answered(200, list([])), EXPECTED)).toEqual({ kind: 'absent', by: ['reference'] });
    const gone = answered(404, error('payout_not_found'));
    expect(mapRead(gone, EXPECTED)).toEqual({ kind: 'absent', by: ['provider_id'] });
  });

  it.each<[string, Exchange, string]>([
    ['our payout', answered(200, PAYOUT), 'found'],
    ['UO-02: absence in the words of the provider', answered(404, error('payout_not_found')), 'absent'],
    ['a 404 of somebody else', answered(404, '<html>'), 'cannot_tell'],
    ['a 404 with another code', answered(404, error('unknown_path')), 'cannot_tell'],
    ['another payout', answered(200, payout({ id: 'po_somethingelse' })), 'found_other'],
    ['a payout in a 201', answered(201, PAYOUT), 'cannot_tell'],
    ['an unknown status', answered(200, payout({ status: 'done' })), 'cannot_tell'],
    ['a broken call', broken('connect_refused', false), 'cannot_tell'],
  ])('by id: %s', (_title, exchange, kind) => {
    expect(mapRead(exchange, { ...EXPECTED, providerRef: PAYOUT.id }).kind).toBe(kind);
  });
});

describe('whatever comes back', () => {
  const FAULTS: readonly ExchangeFault[] = [
    'lease_lost',
    'dns',
    'connect_refused',
    'deadline',
    'reset',
    'unreadable',
  ];
  const CODES = [
    'card_declined',
    'insufficient_funds',
    'parameter_invalid',
    'rate_limited',
    'invalid_api_key',
  ];
  const code = fc.oneof(
    fc.constantFrom(
      ...CODES,
      'permission_denied',
      'idempotency_key_in_use',
      'idempotency_key_reused',
      'constructor',
    ),
    fc.string(),
  );
  const nearlyOurs = fc
    .record(
      {
        id: fc.oneof(fc.constant('po_abcdefgh'), fc.string()),
        object: fc.constantFrom('payout', 'list', 'refund'),
        livemode: fc.boolean(),
        amount: fc.oneof(fc.constant(1250), fc.integer(), fc.double(), fc.constant('1250')),
        currency: fc.constantFrom('EUR', 'USD', null),
        destination: fc.constantFrom('acct_dest', 'acct_other'),
        reference: fc.constantFrom('pay_a/1', 'pay_a/2', ''),
        status: fc.oneof(
          fc.constantFrom('succeeded', 'pending', 'failed', 'requires_commit', 'cancelled'),
          fc.string(),
          fc.jsonValue(),
        ),
        failure_code: fc.oneof(fc.constant(null), code),
        returned: fc.oneof(fc.constant(null), fc.jsonValue()),
      },
      { requiredKeys: [] },
    )
    .map((changes) => ({ ...PAYOUT, ...changes }));
  const errors = code.map((text) => ({ error: { type: 'some_error', code: text } }));
  const lists = fc.record({
    object: fc.constantFrom('list', 'payout'),
    data: fc.oneof(fc.array(nearlyOurs, { maxLength: 3 }), fc.jsonValue()),
    has_more: fc.oneof(fc.boolean(), fc.constant(null)),
  });
  const bodies = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('<!doctype html><title>502</title>', 'x'.repeat(5_000_000), '['.repeat(100_000)),
    fc.json(),
    fc.oneof(nearlyOurs, errors, lists).map((value) => JSON.stringify(value)),
    nearlyOurs.map((value) => JSON.stringify(value).slice(0, -5)),
  );
  const headers = fc.record(
    {
      'idempotent-replayed': fc.constantFrom('true', 'false'),
      'retry-after': fc.oneof(fc.string(), fc.integer().map(String)),
      'request-id': fc.string(),
      date: fc.string(),
    },
    { requiredKeys: [] },
  );
  const statuses = fc.oneof(
    fc.constantFrom(200, 201, 204, 307, 400, 401, 402, 403, 404, 408, 409, 422, 429, 500, 502),
    fc.integer({ min: 100, max: 999 }),
  );
  const responses = fc
    .tuple(statuses, bodies, headers)
    .map(([status, body, given]): Exchange => answered(status, body, given));
  const exchanges = fc.oneof(
    { weight: 8, arbitrary: responses },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom(...FAULTS), fc.boolean())
        .map(([fault, sent]) => broken(fault, sent)),
    },
  );
  const calls = fc.constantFrom<CallKind>('move', 'create', 'commit', 'cancel');

  it('a writing call has exactly one class, and a code of a closed form', () => {
    fc.assert(
      fc.property(exchanges, calls, (exchange, call) => {
        const result = mapWrite(exchange, EXPECTED, call);
        expect(RESULT_CLASSES).toContain(result.class);
        expect(result.code).toMatch(/^[a-z0-9_]{1,64}$/);
        expect(result.retryAfterMs === null || result.retryAfterMs >= 0).toBe(true);
        expect(Buffer.byteLength(result.foreignBody ?? '')).toBeLessThanOrEqual(4_096);
      }),
      { numRuns: 2_000 },
    );
  });

  it('not_sent is said exactly when no byte was sent', () => {
    fc.assert(
      fc.property(exchanges, calls, (exchange, call) => {
        expect(mapWrite(exchange, EXPECTED, call).class === 'not_sent').toBe(!exchange.bytesSent);
      }),
      { numRuns: 2_000 },
    );
  });

  it('no refusal, no success and no "not processed" without its documented form', () => {
    fc.assert(
      fc.property(responses, calls, (exchange, call) => {
        const result = mapWrite(exchange, EXPECTED, call);
        expect(documented(exchange, call)).toContain(result.class);
      }),
      { numRuns: 5_000 },
    );
  });

  it('a lookup finds only our payout, and absence only where the provider says so', () => {
    fc.assert(
      fc.property(exchanges, (exchange) => {
        for (const answer of [mapList(exchange, EXPECTED), mapRead(exchange, EXPECTED)]) {
          if (answer.kind === 'found') {
            expect(answer.result.observed).toEqual({
              amountMinor: 1250n,
              currency: 'EUR',
              destination: 'acct_dest',
            });
          }
          if (answer.kind === 'absent') {
            expect([200, 404]).toContain(exchange.response?.status);
            expect(exchange.response?.body).toMatch(/payout_not_found|"data":\s*\[\]/);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  /** The classes that an answer may have, by a second reading of the table of observations. */
  function documented({ response }: Exchange, call: CallKind): ResultClass[] {
    const { status, body } = response!;
    const said = read(body);
    const errorCode = read(said['error'])['code'];
    const form = `${status} ${String(errorCode)}`;
    const always: ResultClass[] = ['ambiguous'];
    const stops = call === 'cancel';
    if (!stops && (form === '402 card_declined' || form === '400 parameter_invalid')) return ['rejected'];
    if (!stops && form === '402 destination_closed') return ['rejected'];
    if (!stops && form === '402 insufficient_funds') return ['rejected_funds'];
    if (form === '429 rate_limited') return [...always, 'throttled'];
    if (form === '401 invalid_api_key' || form === '403 permission_denied') return [...always, 'config'];
    if (form === '409 idempotency_key_in_use') return ['in_flight'];
    if (form === '400 idempotency_key_reused') return ['key_mismatch'];
    if ((status !== 200 && status !== 201) || said['object'] !== 'payout') return always;
    const ours =
      said['amount'] === 1250 &&
      said['currency'] === 'EUR' &&
      said['destination'] === 'acct_dest' &&
      said['reference'] === 'pay_a/1';
    if (!ours) return [...always, 'key_mismatch'];
    if (stops) return [...always, said['status'] === 'cancelled' ? 'accepted' : 'rejected'];
    if (call === 'commit' && said['status'] === 'cancelled') return ['rejected', ...always];
    if (said['status'] !== 'failed') return [...always, 'accepted'];
    return said['failure_code'] === 'insufficient_funds'
      ? [...always, 'rejected_funds']
      : [...always, 'rejected'];
  }
  function read(value: unknown): Record<string, unknown> {
    if (typeof value !== 'string') return typeof value === 'object' && value !== null ? { ...value } : {};
    try {
      return read(JSON.parse(value) as unknown);
    } catch {
      return {};
    }
  }
});

function rawAmount(literal: string): string {
  return JSON.stringify(PAYOUT).replace('"amount":1250', `"amount":${literal}`);
}
function REPLAYED(): Record<string, string> {
  return { 'idempotent-replayed': 'true' };
}
function dates(retryAfter: string, date: string): Record<string, string> {
  return { 'retry-after': `Wed, 21 Oct 2026 ${retryAfter} GMT`, date: `Wed, 21 Oct 2026 ${date} GMT` };
}
