/**
 * Every refusal and fault that a client can see, as one closed catalogue. The problem filter maps
 * it to RFC 9457; nothing else invents a code, a status or a title.
 *
 * 400: cannot be understood. 422: understood, not allowed. 409: right request, wrong moment.
 * 412 and 428: version. `retryable`: the same request may succeed later without a change.
 */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** Says what happened and what to do next. Fixed text: it can never echo input. */
  readonly detail: string;
  readonly retryable: boolean;
}

const kind = (status: number, title: string, detail: string, retryable = false): ProblemKind =>
  Object.freeze({ status, title, detail, retryable });

const SAME_KEY = 'Repeat the request with the same idempotency key: it can never pay twice.';

export const PROBLEMS = Object.freeze({
  // The request as bytes.
  malformed_request: kind(400, 'Malformed request', 'The HTTP request could not be parsed.'),
  malformed_url: kind(400, 'Malformed URL', 'The URL holds a sequence that does not decode.'),
  request_timeout: kind(408, 'Request time-out', 'The request did not arrive in time. Send it again.', true),
  payload_too_large: kind(
    413,
    'Body too large',
    'A request body may hold at most 16 KiB, an event of a provider 64 KiB.',
  ),
  uri_too_long: kind(414, 'URI too long', 'The path or one of its parts is longer than any of our routes.'),
  unsupported_media_type: kind(
    415,
    'Unsupported media type',
    'Send application/json in UTF-8 without a content encoding.',
  ),
  expectation_failed: kind(417, 'Expectation failed', 'The Expect header is not supported.'),
  header_too_large: kind(431, 'Headers too large', 'The request headers together are too large.'),

  // The body as text.
  body_missing: kind(400, 'Body missing', 'This operation needs a JSON object as its body.'),
  body_not_utf8: kind(400, 'Body is not UTF-8', 'The body holds bytes that are not valid UTF-8.'),
  body_byte_order_mark: kind(400, 'Byte order mark', 'The body starts with a byte order mark. Leave it out.'),
  body_syntax: kind(400, 'Body is not JSON', 'The body is not one valid JSON text.'),
  body_too_deep: kind(400, 'Body too deep', 'Objects and arrays may be nested at most 8 deep.'),
  body_duplicate_member: kind(400, 'Duplicate member', 'An object of the body names a member twice.'),
  body_forbidden_member: kind(
    400,
    'Forbidden member',
    'A member of the body has a name that is never allowed.',
  ),
  body_forbidden_text: kind(400, 'Forbidden text', 'A string of the body holds NUL or a lone surrogate.'),

  // The request as fields and headers.
  validation_failed: kind(400, 'Invalid request', 'One or more members are missing, unknown or malformed.'),
  value_out_of_range: kind(400, 'Value out of range', 'A value cannot be stored. Nothing was changed.'),
  idempotency_key_missing: kind(
    400,
    'Idempotency-Key missing',
    'Send one Idempotency-Key header: one key per intended payment, the same on every retry.',
  ),
  idempotency_key_invalid: kind(
    400,
    'Idempotency-Key invalid',
    'The Idempotency-Key header must come exactly once and hold 1 to 255 visible ASCII characters.',
  ),
  if_match_invalid: kind(400, 'If-Match invalid', 'If-Match must hold one strong entity tag such as "v7".'),
  cursor_invalid: kind(400, 'Cursor invalid', 'The cursor is not one of ours for these filters. Start anew.'),
  event_unreadable: kind(
    400,
    'Event unreadable',
    'The event is rightly signed, and is not of a form that this provider sends.',
  ),

  // Who is asking, and for what.
  unauthenticated: kind(401, 'Not authenticated', 'A valid credential is required.'),
  signature_invalid: kind(
    401,
    'Signature invalid',
    'The event is not signed with a known secret, or not in our time.',
  ),
  forbidden: kind(403, 'Not allowed', 'The credential lacks the scope that this operation needs.'),
  second_person_required: kind(
    403,
    'Second person required',
    'Another person than the one who proposed has to approve.',
  ),
  second_factor_required: kind(
    403,
    'Second factor required',
    'The credential does not say that its person showed a second factor. Log in with one.',
  ),
  not_found: kind(404, 'Not found', 'There is nothing under this id.'),
  route_not_found: kind(404, 'No such route', 'There is no such route. See /openapi.json.'),
  method_not_allowed: kind(405, 'Method not allowed', 'The Allow header lists the methods of this route.'),

  // Right request, wrong moment.
  idempotency_key_in_use: kind(
    409,
    'Idempotency key in use',
    'A request with this key is still being carried out. Repeat it after the Retry-After time.',
    true,
  ),
  submission_started: kind(
    409,
    'Submission started',
    'The payment may already be at the provider. Follow it with GET until its state is final.',
  ),
  payment_final: kind(409, 'Payment is final', 'The payment has ended and cannot be changed.'),
  not_applicable: kind(409, 'Not applicable', 'The operation does not apply in the state of the payment.'),
  proposal_void: kind(
    409,
    'Proposal is void',
    'The payment or its evidence changed, the proposal expired, or its proposer may come no more. Make a new proposal.',
  ),
  version_mismatch: kind(412, 'Version mismatch', 'The payment has changed. Read it again and decide anew.'),
  if_match_required: kind(428, 'If-Match required', 'Send the entity tag of the payment in If-Match.'),

  // Understood, not allowed.
  idempotency_key_reused: kind(
    422,
    'Idempotency key reused',
    'This key belongs to a payment with other content. Use one key per intended payment.',
  ),
  execute_at_in_past: kind(
    422,
    'Execution time in the past',
    'execute_at lies in the past. Send "now" to pay at once.',
  ),
  beyond_horizon: kind(422, 'Beyond the horizon', 'execute_at lies further ahead than is accepted.'),
  not_after_before_execute_at: kind(
    422,
    'Deadline before execution',
    'not_after must lie after execute_at and in the future.',
  ),
  currency_unsupported: kind(
    422,
    'Currency not supported',
    'The currency is no active ISO 4217 currency, or the provider does not pay in it.',
  ),
  amount_below_limit: kind(
    422,
    'Amount too small',
    'The amount is below the limit of the tenant or provider.',
  ),
  amount_above_limit: kind(
    422,
    'Amount too large',
    'The amount is above the limit of the tenant or provider.',
  ),
  provider_unknown: kind(422, 'Provider unknown', 'There is no provider of this name for the tenant.'),
  provider_not_allowed: kind(
    422,
    'Provider not allowed',
    'The provider can neither recognise a repeat nor be asked about a payment, and the tenant has not agreed to that.',
  ),
  destination_unsupported: kind(
    422,
    'Destination not supported',
    'The provider cannot pay to a destination of this form.',
  ),
  reference_in_use: kind(
    422,
    'Reference in use',
    'Another payment of the tenant pays this reference, and references are unique there.',
  ),
  endpoint_url_not_allowed: kind(
    422,
    'Endpoint not allowed',
    'Events go to https URLs with a public host name, on port 443 or another that the service lists.',
  ),
  too_many_endpoints: kind(
    422,
    'Too many endpoints',
    'The tenant has as many endpoints as it can have. Delete one first.',
  ),
  replay_too_old: kind(422, 'Too far back', 'Events can be sent again for at most 30 days back.'),
  resolution_not_allowed: kind(
    422,
    'Resolution not allowed',
    'The evidence does not permit this outcome for the payment.',
  ),

  // Our side.
  rate_limited: kind(429, 'Too many requests', 'Wait for the Retry-After time, then repeat.', true),
  internal: kind(500, 'Internal error', `An unexpected fault was logged under the request id. ${SAME_KEY}`),
  storage_unavailable: kind(503, 'Storage unavailable', `Nothing was promised. ${SAME_KEY}`, true),
  issuer_unavailable: kind(
    503,
    'Issuer unavailable',
    'The keys that check tokens of people cannot be read. Nothing was changed. Repeat the request.',
    true,
  ),
  outcome_unknown: kind(
    503,
    'Outcome unknown',
    `The change may have been stored; its confirmation was lost. ${SAME_KEY}`,
    true,
  ),
  overloaded: kind(503, 'Overloaded', 'The request was refused before any work. Repeat it later.', true),
  shutting_down: kind(503, 'Shutting down', 'This process is stopping. Repeat the request.', true),
  recovery_hold: kind(
    503,
    'Recovery hold',
    'After a restore, payments that were due may already have been sent. Ask again later.',
    true,
  ),
});

export type ProblemCode = keyof typeof PROBLEMS;

export const PROBLEM_CODES = Object.freeze(Object.keys(PROBLEMS)) as readonly ProblemCode[];

/** What is wrong with one member of a request. */
export const FIELD_CODES = [
  'required',
  'unknown_member',
  'wrong_type',
  'malformed',
  'too_short',
  'too_long',
  'too_many',
  'out_of_range',
  'not_allowed_value',
  'not_normalized',
  'control_character',
  'card_number',
] as const;
export type FieldCode = (typeof FIELD_CODES)[number];

/** `pointer` is a JSON pointer (RFC 6901) into the body, or into the query read as an object. */
export interface FieldError {
  readonly pointer: string;
  readonly code: FieldCode;
}

export interface DomainErrorOptions {
  /** State and version of the payment concerned, as found when the refusal was decided. */
  readonly state?: string;
  readonly version?: number;
  readonly errors?: readonly FieldError[];
  /** Whole seconds the client should wait; the filter chooses when absent and one is due. */
  readonly retryAfterS?: number;
  /** Further members of the problem, such as `submission_started_at`. Never client input. */
  readonly extra?: Readonly<Record<string, string | number | boolean | null>>;
  /** The fault underneath. Logged, never shown. */
  readonly cause?: unknown;
}

/**
 * A refusal or a translated fault with a code of the catalogue. Its message is the code, so that
 * nothing a client sent can reach a log through it.
 */
export class DomainError extends Error {
  readonly status: number;
  readonly state?: string;
  readonly version?: number;
  readonly errors?: readonly FieldError[];
  readonly retryAfterS?: number;
  readonly extra?: DomainErrorOptions['extra'];

  constructor(
    readonly code: ProblemCode,
    options: DomainErrorOptions = {},
  ) {
    super(code, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DomainError';
    this.status = PROBLEMS[code].status;
    this.state = options.state;
    this.version = options.version;
    this.errors = options.errors;
    this.retryAfterS = options.retryAfterS;
    this.extra = options.extra;
  }
}
