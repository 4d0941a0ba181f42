import Stripe from 'stripe';
import type { StripeHead } from './stripe.call.js';
import { isReplayed, judgeStatus, judgeStatusCode } from './stripe.head.js';
import { wordOf } from './stripe.object.js';
import {
  AUTHENTICATION_REQUIRED,
  UNEXPECTED_STATE,
  asksForCustomer,
  cardRefusal,
  invalidRequestRefusal,
} from './stripe.refusals.js';
import { ambiguous } from './stripe.verdict.js';
import type { CallKind, Expected, Verdict } from './stripe.verdict.js';

const { StripeError, StripeIdempotencyError, StripeRateLimitError, StripeConnectionError, RateLimitError } =
  Stripe.errors;

/** What the SDK threw: an answer in Stripe's error form, its word for none, or anything else. Total. */
export function judgeThrown(
  error: unknown,
  head: StripeHead | null,
  expected: Expected,
  call: CallKind,
): Verdict {
  return error instanceof StripeError ? judgeError(error, head, expected, call) : ambiguous('sdk_fault');
}

/** An answer in Stripe's error form, or the SDK's word for none. */
function judgeError(
  error: InstanceType<typeof StripeError>,
  head: StripeHead | null,
  expected: Expected,
  call: CallKind,
): Verdict {
  const { statusCode: status } = error;
  // A connection error that came after the head, broken JSON: no error of the API.
  if (status === undefined || error instanceof StripeConnectionError) return judgeStatus(head);
  const code = wordOf(error.code) ?? '';
  const replayed = isReplayed(head);
  if (status === 409 && code === 'idempotency_key_in_use') return { class: 'in_flight', status: null, code };
  if (error instanceof StripeIdempotencyError && (status === 400 || status === 409))
    return { class: 'key_mismatch', status: null, code: 'idempotency_key_reused' };
  if (status >= 500) return ambiguous(replayed ? 'stored_error' : 'http_5xx');
  const notProcessed = judgeNotProcessed(error, status, code);
  // A stored answer of this kind would be the answer of an execution.
  if (notProcessed) return replayed ? ambiguous('replayed_refusal') : notProcessed;
  return judgeRefusal(error, { status, code }, expected, call);
}

/** Documented as refused before execution. */
function judgeNotProcessed(
  error: InstanceType<typeof StripeError>,
  status: number,
  code: string,
): Verdict | null {
  const isLimit =
    error instanceof StripeRateLimitError ||
    error instanceof RateLimitError ||
    ((code === 'rate_limit' || code === 'lock_timeout') && [400, 409, 429].includes(status));
  if (isLimit)
    return { class: 'throttled', status: null, code: code === 'lock_timeout' ? code : 'rate_limit' };
  if (status === 401) return { class: 'config', status: null, code: 'authentication' };
  if (status === 403) return { class: 'config', status: null, code: 'permission' };
  return null;
}

function judgeRefusal(
  error: InstanceType<typeof StripeError>,
  { status, code }: { readonly status: number; readonly code: string },
  expected: Expected,
  call: CallKind,
): Verdict {
  // What the object is now, nobody said: it is read.
  if (code === UNEXPECTED_STATE) {
    if (call === 'cancel') return { class: 'rejected', status: null, code };
    return ambiguous(code);
  }
  if (call === 'read' || call === 'cancel') return notUnderstood(status, code);
  if (isAboutOtherObject(error, expected)) return ambiguous('other_object');
  if (status === 402 && error.rawType === 'card_error') return judgeCardError(error, code);
  if ((status === 400 || status === 404) && error.rawType === 'invalid_request_error') {
    // The object that a commit names was there: an answer that it is not says nothing about the money.
    const refusal = call === 'commit' && code === 'resource_missing' ? null : invalidRequestRefusal(code);
    if (refusal) return { class: refusal, status: 'failed', code };
  }
  return notUnderstood(status, code);
}

function judgeCardError(error: InstanceType<typeof StripeError>, code: string): Verdict {
  const declineCode = wordOf(error.decline_code);
  if (asksForCustomer(code, declineCode)) return ambiguous(AUTHENTICATION_REQUIRED);
  const refusal = cardRefusal(code, declineCode);
  return refusal ? { ...refusal, status: 'failed' } : notUnderstood(402, code);
}

/** Words of Stripe's that tell people more than the HTTP status does; no other word of it passes. */
const TELLING = ['resource_missing', 'processing_error'];

function notUnderstood(status: number, code: string): Verdict {
  return TELLING.includes(code) ? ambiguous(code) : judgeStatusCode(status);
}

/** An error of a charge carries the PaymentIntent it is about. */
function isAboutOtherObject(error: InstanceType<typeof StripeError>, { providerRef }: Expected): boolean {
  const id: unknown = error.payment_intent?.id;
  return providerRef !== null && id !== undefined && id !== providerRef;
}
