import { applyDecorators } from '@nestjs/common';
import { ApiCreatedResponse, ApiHeader, ApiOkResponse, ApiResponse, ApiTags } from '@nestjs/swagger';
import { Operation } from '../http/documented.js';
import { Payment, PaymentHistory, PaymentList } from './schemas/payment.schema.js';

/** How the routes of payments are described in the OpenAPI document, one decorator per operation. */

const text = (description: string, example: string) => ({
  description,
  schema: { type: 'string' as const },
  example,
});
const ETAG = { ETag: text('Strong entity tag: the version of the payment.', '"v1"') };
const LOCATION = {
  Location: text('Where the payment is read.', '/v1/payments/pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk'),
};

const thePayment = (description: string) =>
  ApiOkResponse({ description, standardSchema: Payment, headers: ETAG });
const optionalIfMatch = ApiHeader({
  name: 'If-Match',
  required: false,
  description: 'The entity tag that you have seen; another version is refused with 412.',
  schema: { type: 'string', pattern: '^"v[1-9][0-9]{0,9}"$' },
});

export const Controller = (): ClassDecorator => ApiTags('payments') as ClassDecorator;

export const Create = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Create a payment',
      description: `Accepts one payment, to be sent once, at or after execute_at and never before.

One idempotency key per intended payment: keep it, and send it again on every retry, with the same
body. The key is the payment's identity for ever. A repeat answers 200 with the payment as it is
now and \`Idempotency-Replayed: true\`, also long after execute_at; other content under the same key
is 422 \`idempotency_key_reused\`. After 503 or a lost answer repeat with the same key: it can never
pay twice. 400, 401, 403, 413, 415, 422 for other reasons and 429 do not use up a key.

Times are instants: a client converts local time itself. The destination is stored encrypted and
shown back only to holders of payments:read of the same tenant.`,
      readsBody: true,
      refusals: [
        'body_missing',
        'value_out_of_range',
        'idempotency_key_missing',
        'idempotency_key_invalid',
        'idempotency_key_in_use',
        'idempotency_key_reused',
        'execute_at_in_past',
        'beyond_horizon',
        'not_after_before_execute_at',
        'currency_unsupported',
        'amount_below_limit',
        'amount_above_limit',
        'provider_unknown',
        'provider_not_allowed',
        'destination_unsupported',
        'outcome_unknown',
      ],
    }),
    ApiHeader({
      name: 'Idempotency-Key',
      required: true,
      description:
        'Your own name for this payment: 1 to 255 visible ASCII characters, bare or as a quoted string, case-sensitive.',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
      example: 'invoice-2041',
    }),
    ApiCreatedResponse({
      description: 'Accepted: it is stored and will be sent when due.',
      standardSchema: Payment,
      headers: { ...ETAG, ...LOCATION },
    }),
    ApiOkResponse({
      description: 'A repeat: the payment that this key belongs to, as it is now.',
      standardSchema: Payment,
      headers: {
        ...ETAG,
        ...LOCATION,
        'Idempotency-Replayed': text('Present on a repeat.', 'true'),
      },
    }),
  ) as MethodDecorator;

export const Read = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Read a payment',
      description: `The payment as it is now. The entity tag names its version, which every change of state
raises; what is only observed (first_call_at, lateness_ms, next_action_at) may appear under the same
tag.`,
      readsBody: false,
      refusals: ['not_found'],
    }),
    ApiHeader({
      name: 'If-None-Match',
      required: false,
      description: 'An entity tag you hold; 304 when it is still the payment’s.',
      schema: { type: 'string' },
    }),
    thePayment('The payment.'),
    ApiResponse({ status: 304, description: 'Nothing changed since the entity tag.', headers: ETAG }),
  ) as MethodDecorator;

export const History = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Read the history of a payment',
      description: 'Every transition, attempt and piece of evidence, oldest first, up to 2,000 entries.',
      readsBody: false,
      refusals: ['not_found'],
    }),
    ApiOkResponse({ description: 'The history.', standardSchema: PaymentHistory }),
  ) as MethodDecorator;

export const List = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'List payments',
      description: `Newest first. Follow next_cursor with the same filters until it is null: each payment that
existed when the walk began is seen exactly once, whatever is added meanwhile. Ranges include their
start and exclude their end. There is no total.`,
      readsBody: false,
      refusals: ['validation_failed', 'cursor_invalid'],
    }),
    ApiOkResponse({
      description: 'One page.',
      standardSchema: PaymentList,
      headers: { Link: text('The next page, rel="next".', '</v1/payments?cursor=…>; rel="next"') },
    }),
  ) as MethodDecorator;

export const Cancel = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Cancel a payment',
      description: `200 means: it was not sent and never will be. Once submission has started it is
409 \`submission_started\`: the money may have moved. A repeat is 200 again; an expired payment is 200
with state expired.`,
      readsBody: true,
      refusals: [
        'not_found',
        'if_match_invalid',
        'submission_started',
        'payment_final',
        'version_mismatch',
        'outcome_unknown',
        'recovery_hold',
      ],
    }),
    optionalIfMatch,
    thePayment('Cancelled, or found cancelled or expired.'),
  ) as MethodDecorator;

export const Reschedule = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Give a scheduled payment another time',
      description: `Only while it is scheduled, and only with the entity tag of the version you have seen. A
not_after that is left out moves by the same distance as execute_at.`,
      readsBody: true,
      refusals: [
        'body_missing',
        'not_found',
        'if_match_invalid',
        'if_match_required',
        'submission_started',
        'payment_final',
        'not_applicable',
        'version_mismatch',
        'execute_at_in_past',
        'beyond_horizon',
        'not_after_before_execute_at',
        'outcome_unknown',
      ],
    }),
    ApiHeader({
      name: 'If-Match',
      required: true,
      description: 'The entity tag of the version that you have seen.',
      schema: { type: 'string', pattern: '^"v[1-9][0-9]{0,9}"$' },
    }),
    thePayment('The payment with its new times.'),
  ) as MethodDecorator;

const OPERATOR_REFUSALS = [
  'not_found',
  'if_match_invalid',
  'payment_final',
  'not_applicable',
  'version_mismatch',
  'outcome_unknown',
] as const;

export const Hold = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Hold a payment',
      description: 'A held payment does not run until it is released; its deadline goes on. A repeat is 200.',
      readsBody: true,
      refusals: [...OPERATOR_REFUSALS, 'submission_started'],
    }),
    optionalIfMatch,
    thePayment('Held, or found held.'),
  ) as MethodDecorator;

export const Release = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Release a held payment',
      description: `It runs at its time again, or at once when that has passed. Past its deadline it expires
instead, and the answer is 409 \`payment_final\` with state expired. A repeat is 200 while nothing else
has changed the payment.`,
      readsBody: true,
      refusals: [...OPERATOR_REFUSALS, 'recovery_hold'],
    }),
    optionalIfMatch,
    thePayment('Scheduled again.'),
  ) as MethodDecorator;

export const Escalate = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Hand an open outcome to people',
      description: `Only while the payment is submitted or unknown: the automatic inquiry ends, a review case
is opened, and two people decide. It never says that the payment failed.`,
      readsBody: true,
      refusals: [...OPERATOR_REFUSALS],
    }),
    optionalIfMatch,
    thePayment('In review.'),
  ) as MethodDecorator;
