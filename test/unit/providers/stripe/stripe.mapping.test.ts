import * as fc from 'fast-check';
import Stripe from 'stripe';
import { describe, expect, it } from 'vitest';
import { RESULT_CLASSES } from '../../../../src/domain/provider-outcome.js';
import type { ResultClass } from '../../../../src/domain/provider-outcome.js';
import type { StripeExchange } from '../../../../src/providers/stripe/stripe.client.js';
import { mapEntries, mapPage, mapRead, mapWrite } from '../../../../src/providers/stripe/stripe.mapping.js';
import type { CallKind } from '../../../../src/providers/stripe/stripe.verdict.js';
import {
  INTENT_EXPECTED,
  PAYMENT,
  TRANSFER_EXPECTED,
  apiError,
  apiErrorV2,
  head,
  intent,
  resolved,
  thrown,
  transfer,
} from '../../../support/stripe-exchange.js';

const OF_SECOND = { payment_id: PAYMENT.paymentId, generation: '2', provider_key: 'other' };
const REPLAYED = { 'idempotent-replayed': 'true' };
const invalid = (code?: string): Record<string, unknown> => ({
  type: 'invalid_request_error',
  code,
  message: 'no',
});
const card = (code: string, decline_code?: string): Record<string, unknown> => ({
  type: 'card_error',
  code,
  decline_code,
  message: 'declined',
});

const move = (exchange: StripeExchange): ReturnType<typeof mapWrite> =>
  mapWrite(exchange, TRANSFER_EXPECTED, 'move');
const on = (call: CallKind, exchange: StripeExchange): ReturnType<typeof mapWrite> =>
  mapWrite(exchange, { ...INTENT_EXPECTED, providerRef: call === 'create' ? null : 'pi_1Intent' }, call);

describe('every outcome of the SDK has a class', () => {
  const errorClasses = Object.entries(Stripe.errors).filter(
    ([, value]) => typeof value === 'function' && value.prototype instanceof Error,
  ) as unknown as [string, new (raw: object) => Error][];

  it('the SDK has the error classes that this table was written for', () => {
    expect(errorClasses.length).toBeGreaterThan(30);
  });

  it.each(errorClasses)('UO-01: %s without a status is ambiguous', (_name, ErrorClass) => {
    const error = new ErrorClass({ message: 'x', type: 'card_error', code: 'card_declined' });
    expect(move(thrown(error)).class).toBe('ambiguous');
    expect(on('commit', thrown(error)).class).toBe('ambiguous');
  });

  it.each<[string, StripeExchange, ResultClass, string]>([
    ['a TypeError', thrown(new TypeError('fetch failed')), 'ambiguous', 'sdk_fault'],
    ['a thrown string', thrown('boom'), 'ambiguous', 'sdk_fault'],
    ['a thrown undefined', thrown(undefined), 'ambiguous', 'sdk_fault'],
    ['500 plain', apiError(500, { type: 'api_error' }), 'ambiguous', 'http_5xx'],
    ['500 replayed', apiError(500, { type: 'api_error' }, REPLAYED), 'ambiguous', 'stored_error'],
    ['503', apiError(503, { type: 'api_error' }), 'ambiguous', 'http_5xx'],
    ['424', apiError(424, { type: 'api_error', code: 'rate_limit_x' }), 'ambiguous', 'http_4xx'],
    ['408', apiError(408, { type: 'api_error' }), 'ambiguous', 'http_4xx'],
    [
      '409 of a busy key',
      apiError(409, { type: 'idempotency_error', code: 'idempotency_key_in_use' }),
      'in_flight',
      'idempotency_key_in_use',
    ],
    ['409 of another kind', apiError(409, { type: 'idempotency_error' }), 'ambiguous', 'http_4xx'],
    [
      'StripeIdempotencyError 400',
      apiError(400, { type: 'idempotency_error' }),
      'key_mismatch',
      'idempotency_key_reused',
    ],
    [
      'StripeIdempotencyError 409 of v2',
      apiErrorV2(409, { type: 'idempotency_error' }),
      'key_mismatch',
      'idempotency_key_reused',
    ],
    ['429', apiError(429, invalid('rate_limit')), 'throttled', 'rate_limit'],
    ['429 without a code', apiError(429, { type: 'api_error' }), 'throttled', 'rate_limit'],
    ['400 with code rate_limit', apiError(400, invalid('rate_limit')), 'throttled', 'rate_limit'],
    ['429 lock_timeout', apiError(429, invalid('lock_timeout')), 'throttled', 'lock_timeout'],
    ['400 lock_timeout', apiError(400, invalid('lock_timeout')), 'throttled', 'lock_timeout'],
    [
      'RateLimitError of v2',
      apiErrorV2(429, { type: 'rate_limit', code: 'rate_limit' }),
      'throttled',
      'rate_limit',
    ],
    ['429 replayed', apiError(429, invalid('rate_limit'), REPLAYED), 'ambiguous', 'replayed_refusal'],
    ['401', apiError(401, invalid()), 'config', 'authentication'],
    ['403', apiError(403, invalid()), 'config', 'permission'],
    ['401 replayed', apiError(401, invalid(), REPLAYED), 'ambiguous', 'replayed_refusal'],
    [
      '200 with an error in it',
      apiError(200, invalid('parameter_missing')),
      'ambiguous',
      'unrecognised_answer',
    ],
    [
      '400 with a listed code',
      apiError(400, invalid('parameter_invalid_integer')),
      'rejected',
      'parameter_invalid_integer',
    ],
    ['400 with an unknown code', apiError(400, invalid('something_new')), 'ambiguous', 'http_4xx'],
    ['400 without a code', apiError(400, invalid()), 'ambiguous', 'http_4xx'],
    [
      '400 that names a member of every object',
      apiError(400, invalid('constructor')),
      'ambiguous',
      'http_4xx',
    ],
    [
      '400 of an unknown type',
      apiError(400, { type: 'new_error', code: 'parameter_missing' }),
      'ambiguous',
      'http_4xx',
    ],
    ['404 with a listed code', apiError(404, invalid('resource_missing')), 'rejected', 'resource_missing'],
    [
      'balance_insufficient',
      apiError(400, invalid('balance_insufficient')),
      'rejected_funds',
      'balance_insufficient',
    ],
    [
      '402 that is no card error',
      apiError(402, { type: 'api_error', code: 'card_declined' }),
      'ambiguous',
      'http_4xx',
    ],
    ['422', apiError(422, invalid('parameter_missing')), 'ambiguous', 'http_4xx'],
    ['v2 CannotProceedError', apiErrorV2(400, { type: 'cannot_proceed' }), 'ambiguous', 'http_4xx'],
    [
      'an OAuth error',
      thrown(new Stripe.errors.StripeOAuthError({ statusCode: 400 } as never), 400),
      'ambiguous',
      'http_4xx',
    ],
  ])('UO-01: transfers: %s', (_name, exchange, resultClass, code) => {
    expect(move(exchange)).toMatchObject({ class: resultClass, code });
  });

  it.each<[string, Record<string, unknown>, ResultClass, string]>([
    ['a decline', card('card_declined', 'generic_decline'), 'rejected', 'card_declined'],
    ['an expired card', card('expired_card'), 'rejected', 'expired_card'],
    [
      'a decline for funds',
      card('card_declined', 'insufficient_funds'),
      'rejected_funds',
      'insufficient_funds',
    ],
    ['insufficient_funds', card('insufficient_funds'), 'rejected_funds', 'insufficient_funds'],
    ['authentication_required', card('authentication_required'), 'ambiguous', 'authentication_required'],
    [
      'a decline that asks for the customer',
      card('card_declined', 'authentication_required'),
      'ambiguous',
      'authentication_required',
    ],
    ['processing_error', card('processing_error'), 'ambiguous', 'processing_error'],
    [
      'a decline of another object',
      { ...card('card_declined'), payment_intent: { id: 'pi_other' } },
      'ambiguous',
      'other_object',
    ],
    [
      'a decline of this object',
      { ...card('card_declined'), payment_intent: { id: 'pi_1Intent' } },
      'rejected',
      'card_declined',
    ],
  ])('PR-02: a confirmation answered 402: %s', (_name, raw, resultClass, code) => {
    expect(on('commit', apiError(402, raw))).toMatchObject({ class: resultClass, code });
  });

  it.each<[string, StripeExchange, ResultClass, string]>([
    [
      'an unexpected state is read, not believed',
      apiError(400, invalid('payment_intent_unexpected_state')),
      'ambiguous',
      'payment_intent_unexpected_state',
    ],
    [
      'an object that was there is not missing',
      apiError(404, invalid('resource_missing')),
      'ambiguous',
      'resource_missing',
    ],
    ['a stored decline counts', apiError(402, card('card_declined'), REPLAYED), 'rejected', 'card_declined'],
  ])('a confirmation: %s', (_name, exchange, resultClass, code) => {
    expect(on('commit', exchange)).toMatchObject({ class: resultClass, code });
  });

  it('a refused cancel never says that the payment was refused', () => {
    expect(on('cancel', apiError(400, invalid('payment_intent_unexpected_state')))).toMatchObject({
      class: 'rejected',
      status: null,
    });
    expect(on('cancel', apiError(400, invalid('parameter_missing'))).class).toBe('ambiguous');
    expect(on('cancel', apiError(402, card('card_declined'))).class).toBe('ambiguous');
  });
});

describe('no byte left', () => {
  it.each([
    'connect_refused',
    'dns',
    'connect_timeout',
    'connect_failed',
    'lease_lost',
    'client_fault',
    'client_closed',
  ] as const)('%s without a byte is not_sent, whatever the SDK threw', (fault) => {
    const error = new Stripe.errors.StripeConnectionError({ message: 'timeout' });
    const exchange: StripeExchange = {
      outcome: { kind: 'thrown', error },
      bytesSent: false,
      fault,
      head: null,
    };
    expect(move(exchange)).toMatchObject({ class: 'not_sent', code: fault, bytesSent: false });
  });

  it.each(['reset', 'deadline', 'sdk_timeout', 'second_send', 'body_too_large', 'client_closed'] as const)(
    'DC-01: %s after the first byte is ambiguous, also beside a refusal',
    (fault) => {
      expect(move({ ...apiError(400, invalid('balance_insufficient')), fault })).toMatchObject({
        class: 'ambiguous',
        code: fault,
      });
    },
  );
});

describe('an answer without `error`', () => {
  it('a transfer that is the instruction is accepted and final', () => {
    expect(move(resolved(transfer(), 200, REPLAYED))).toMatchObject({
      class: 'accepted',
      status: 'succeeded',
      providerRef: 'tr_1Transfer',
      requestId: 'req_1',
      httpStatus: 200,
      replayed: true,
      observed: { amountMinor: 1_250n, currency: 'EUR', destination: 'acct_1Payee' },
      foreignBody: null,
    });
  });

  it.each<[string, StripeExchange, ResultClass, string]>([
    ['404', resolved(transfer(), 404), 'ambiguous', 'http_4xx'],
    ['502', resolved(transfer(), 502), 'ambiguous', 'http_5xx'],
    ['502 that is a stored answer', resolved({}, 502, REPLAYED), 'ambiguous', 'stored_error'],
    ['307', resolved(transfer(), 307), 'ambiguous', 'http_3xx'],
    ['an empty object', resolved({}), 'ambiguous', 'unrecognised_answer'],
    ['another resource', resolved(intent('succeeded')), 'ambiguous', 'unrecognised_answer'],
    ['another id prefix', resolved(transfer({ id: 'po_1Transfer' })), 'ambiguous', 'unrecognised_answer'],
    [
      'a deleted object',
      resolved({ id: 'tr_1Transfer', object: 'transfer', deleted: true }),
      'ambiguous',
      'unrecognised_answer',
    ],
    ['the other mode', resolved(transfer({ livemode: true })), 'ambiguous', 'other_mode'],
    ['no mode', resolved(transfer({ livemode: 'false' })), 'ambiguous', 'unrecognised_answer'],
    ['an amount in text', resolved(transfer({ amount: '1250' })), 'ambiguous', 'unrecognised_answer'],
    ['an amount with decimals', resolved(transfer({ amount: 12.5 })), 'ambiguous', 'unrecognised_answer'],
    ['an amount beyond 2^53', resolved(transfer({ amount: 2 ** 60 })), 'ambiguous', 'unrecognised_answer'],
    ['AM-01: another amount', resolved(transfer({ amount: 1251 })), 'key_mismatch', 'other_amount'],
    ['another currency', resolved(transfer({ currency: 'usd' })), 'key_mismatch', 'other_currency'],
    [
      'another destination',
      resolved(transfer({ destination: 'acct_2' })),
      'key_mismatch',
      'other_destination',
    ],
    [
      'another payment',
      resolved(transfer({ metadata: { payment_id: 'pay_other' } })),
      'key_mismatch',
      'other_reference',
    ],
    ['no metadata', resolved(transfer({ metadata: {} })), 'key_mismatch', 'other_reference'],
    [
      'another provider key',
      resolved(
        transfer({ metadata: { payment_id: PAYMENT.paymentId, generation: '1', provider_key: 'other' } }),
      ),
      'key_mismatch',
      'other_key',
    ],
    ['another group', resolved(transfer({ transfer_group: 'pay_other' })), 'key_mismatch', 'other_reference'],
  ])('UO-01: transfers: %s', (_name, exchange, resultClass, code) => {
    expect(move(exchange)).toMatchObject({ class: resultClass, code });
  });

  it('what was not understood is kept as evidence, at most 4 KiB of it', () => {
    const exchange = resolved({ filler: 'x'.repeat(10_000) }, 502);
    expect(move(exchange).foreignBody).toHaveLength(4096);
  });

  it.each<[CallKind, Record<string, unknown>, ResultClass, string | null, string]>([
    ['create', intent('requires_confirmation'), 'accepted', 'inert', 'requires_confirmation'],
    ['create', intent('succeeded'), 'ambiguous', null, 'committed_itself'],
    ['create', intent('processing'), 'ambiguous', null, 'committed_itself'],
    ['create', intent('requires_payment_method'), 'ambiguous', null, 'committed_itself'],
    ['create', intent('canceled'), 'ambiguous', null, 'committed_itself'],
    ['commit', intent('succeeded'), 'accepted', 'succeeded', 'succeeded'],
    ['commit', intent('processing'), 'accepted', 'pending', 'processing'],
    ['commit', intent('requires_confirmation'), 'ambiguous', null, 'unexpected_status'],
    ['commit', intent('requires_action'), 'ambiguous', null, 'requires_action'],
    ['commit', intent('requires_capture'), 'ambiguous', null, 'requires_capture'],
    ['commit', intent('on_holiday'), 'ambiguous', null, 'unknown_status'],
    ['commit', intent('constructor'), 'ambiguous', null, 'unknown_status'],
    ['commit', intent('succeeded', { amount_received: 1249 }), 'ambiguous', null, 'partly_received'],
    ['commit', intent('succeeded', { id: 'pi_2Intent' }), 'key_mismatch', null, 'other_object'],
    ['commit', intent('succeeded', { amount: 1, amount_received: 1 }), 'key_mismatch', null, 'other_amount'],
    ['commit', intent('succeeded', { payment_method: 'pm_2' }), 'key_mismatch', null, 'other_destination'],
    ['commit', intent('succeeded', { payment_method: null }), 'key_mismatch', null, 'other_destination'],
    ['cancel', intent('canceled'), 'accepted', 'failed', 'cancelled'],
    ['cancel', intent('succeeded'), 'ambiguous', null, 'unexpected_status'],
    ['cancel', intent('requires_confirmation'), 'ambiguous', null, 'unexpected_status'],
  ])('PaymentIntents: %s answered by %o is %s', (call, object, resultClass, status, code) => {
    expect(on(call, resolved(object))).toMatchObject({ class: resultClass, status, code });
  });
});

describe('reads', () => {
  const read = (exchange: StripeExchange): ReturnType<typeof mapRead> =>
    mapRead(exchange, { ...INTENT_EXPECTED, providerRef: 'pi_1Intent' });

  it.each<[string, StripeExchange, object]>([
    [
      'an open object',
      resolved(intent('requires_confirmation')),
      { kind: 'found', result: { status: 'inert' } },
    ],
    ['one that succeeded', resolved(intent('succeeded')), { kind: 'found', result: { status: 'succeeded' } }],
    [
      'one that was stopped',
      resolved(intent('canceled')),
      { kind: 'found', result: { class: 'rejected', code: 'cancelled' } },
    ],
    [
      'UO-03: one whose confirmation was declined, its method gone',
      resolved(
        intent('requires_payment_method', {
          payment_method: null,
          last_payment_error: { code: 'card_declined', decline_code: 'insufficient_funds' },
        }),
      ),
      { kind: 'found', result: { class: 'rejected_funds', status: 'failed' } },
    ],
    [
      'one without a method and without a reason',
      resolved(intent('requires_payment_method')),
      { kind: 'cannot_tell' },
    ],
    [
      'one that waits for the customer',
      resolved(intent('requires_action')),
      { kind: 'cannot_tell', code: 'requires_action' },
    ],
    [
      'another amount',
      resolved(intent('succeeded', { amount: 5, amount_received: 5 })),
      { kind: 'found_other' },
    ],
    [
      'another generation',
      resolved(intent('succeeded', { metadata: { payment_id: 'pay_mzxw6ytboi4dqnbq', generation: '2' } })),
      { kind: 'found_other' },
    ],
    [
      'the other mode',
      resolved(intent('succeeded', { livemode: true })),
      { kind: 'cannot_tell', code: 'other_mode' },
    ],
    [
      'UO-02: resource_missing proves nothing',
      apiError(404, invalid('resource_missing')),
      { kind: 'cannot_tell', code: 'resource_missing' },
    ],
    ['UO-02: 403 proves nothing', apiError(403, invalid()), { kind: 'cannot_tell', code: 'permission' }],
    [
      '404 without `error`',
      resolved({ message: 'Not Found' }, 404),
      { kind: 'cannot_tell', code: 'http_4xx' },
    ],
    [
      'a time-out',
      { ...thrown(new TypeError()), fault: 'deadline' as const },
      { kind: 'cannot_tell', code: 'deadline' },
    ],
  ])('%s', (_name, exchange, answer) => {
    expect(read(exchange)).toMatchObject(answer);
  });

  it('a page is a list in Stripe’s form, else nobody can tell', () => {
    const list = { object: 'list', data: [transfer()], has_more: false };
    expect(mapPage(resolved(list), TRANSFER_EXPECTED)).toMatchObject({ kind: 'page', hasMore: false });
    expect(mapPage(resolved(list, 502), TRANSFER_EXPECTED)).toMatchObject({ kind: 'cannot_tell' });
    expect(mapPage(resolved({ ...list, has_more: null }), TRANSFER_EXPECTED)).toMatchObject({
      kind: 'cannot_tell',
    });
    expect(mapPage(resolved({ data: [] }), TRANSFER_EXPECTED)).toMatchObject({ kind: 'cannot_tell' });
  });

  it.each<[string, readonly unknown[], object]>([
    ['none', [], { kind: 'absent', by: ['reference'] }],
    ['ours', [transfer()], { kind: 'found', result: { providerRef: 'tr_1Transfer' } }],
    [
      'ours, since reversed',
      [transfer({ amount_reversed: 1250, reversed: true })],
      { kind: 'found', result: { status: 'succeeded', code: 'reversed' } },
    ],
    ['DC-01: two', [transfer(), transfer({ id: 'tr_2Transfer' })], { kind: 'found_many', count: 2 }],
    [
      'one of another generation',
      [transfer({ metadata: { payment_id: 'pay_mzxw6ytboi4dqnbq', generation: '2' } })],
      { kind: 'found_other' },
    ],
    ['one that cannot be read', [{ id: 'tr_1Transfer' }], { kind: 'cannot_tell', code: 'entry_unreadable' }],
  ])('transfers of the group: %s', (_name, entries, answer) => {
    const exchange = resolved({ object: 'list', data: entries, has_more: false });
    expect(mapEntries(entries, 'reference', exchange, TRANSFER_EXPECTED)).toMatchObject(answer);
  });

  it.each<[string, readonly unknown[], object]>([
    ['one open', [intent('requires_confirmation')], { kind: 'found', result: { status: 'inert' } }],
    [
      'several open',
      [intent('requires_confirmation'), intent('requires_confirmation', { id: 'pi_2Intent' })],
      { kind: 'cannot_tell', code: 'several_inert' },
    ],
    [
      'one released among orphans',
      [intent('requires_confirmation', { id: 'pi_2Intent' }), intent('succeeded')],
      { kind: 'found', result: { providerRef: 'pi_1Intent', status: 'succeeded' } },
    ],
    [
      'DC-01: two released',
      [intent('succeeded'), intent('succeeded', { id: 'pi_2Intent' })],
      { kind: 'found_many', count: 2 },
    ],
    [
      'one of another generation that was declined, and ours',
      [intent('requires_payment_method', { id: 'pi_2Intent', metadata: OF_SECOND }), intent('succeeded')],
      { kind: 'found', result: { providerRef: 'pi_1Intent' } },
    ],
    [
      'one of another generation that moved nothing',
      [intent('requires_confirmation', { metadata: OF_SECOND })],
      { kind: 'absent', by: ['list_scan'] },
    ],
    [
      'DC-01: one of another generation that moved',
      [intent('succeeded', { metadata: OF_SECOND }), intent('requires_confirmation')],
      { kind: 'found_other' },
    ],
  ])('PaymentIntents of a scan: %s', (_name, entries, answer) => {
    const exchange = resolved({ object: 'list', data: entries, has_more: false });
    expect(mapEntries(entries, 'list_scan', exchange, INTENT_EXPECTED)).toMatchObject(answer);
  });
});

describe('Retry-After', () => {
  it.each([
    ['60', 60_000],
    ['Wed, 21 Oct 2026 07:28:05 GMT', 5_000],
    ['Wed, 21 Oct 2026 07:27:00 GMT', 0],
    ['soon', null],
    ['-1', null],
  ])('BK-02: %s', (text, ms) => {
    const headers = { 'retry-after': text, date: 'Wed, 21 Oct 2026 07:28:00 GMT' };
    expect(move(apiError(429, invalid('rate_limit'), headers)).retryAfterMs).toBe(ms);
  });
});

describe('for all answers', () => {
  const calls = fc.constantFrom<CallKind>('move', 'create', 'commit', 'cancel', 'read');
  const anyExchange: fc.Arbitrary<StripeExchange> = fc.record({
    outcome: fc.oneof(
      fc.anything().map((value) => ({ kind: 'resolved', value }) as const),
      fc.anything().map((error) => ({ kind: 'thrown', error }) as const),
      fc
        .record({ statusCode: fc.integer({ min: 100, max: 599 }), type: fc.string(), code: fc.string() })
        .map((raw) => ({ kind: 'thrown', error: Stripe.errors.generateV1Error(raw as never) }) as const),
      fc.constant({ kind: 'silent' } as const),
    ),
    bytesSent: fc.constant(true),
    fault: fc.constant(null),
    head: fc.option(fc.integer({ min: 100, max: 599 }).map((status) => head(status))),
  });

  it('no answer escapes the mapping, and what nobody documented is ambiguous', () => {
    fc.assert(
      fc.property(anyExchange, calls, (exchange, call) => {
        for (const expected of [TRANSFER_EXPECTED, INTENT_EXPECTED]) {
          const result = mapWrite(exchange, expected, call);
          expect(RESULT_CLASSES).toContain(result.class);
          // Random text meets a listed code or a right object practically never.
          const byStatusAlone = ['throttled', 'config'];
          if (!byStatusAlone.includes(result.class)) expect(result.class).toBe('ambiguous');
          expect(result.code).toMatch(/^[a-z][a-z0-9_]{0,63}$/);
          expect(mapRead(exchange, expected).kind).toBe('cannot_tell');
        }
      }),
      { numRuns: 500 },
    );
  });

  it('a right object under another status than 2xx is never accepted', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), (status) => {
        const { class: resultClass } = move(resolved(transfer(), status));
        expect(resultClass === 'accepted').toBe(status >= 200 && status <= 299);
      }),
    );
  });

  it('an object that differs in one money field is never accepted', () => {
    const changes = fc.oneof(
      fc
        .integer({ min: 0, max: 10 ** 9 })
        .filter((n) => n !== 1250)
        .map((amount) => ({ amount })),
      fc.constantFrom('usd', 'jpy', 'gbp').map((currency) => ({ currency })),
      fc.string().map((destination) => ({ destination: `acct_${destination}` })),
    );
    fc.assert(
      fc.property(changes, (change) => {
        expect(move(resolved(transfer(change))).class).toBe('key_mismatch');
      }),
    );
  });
});
