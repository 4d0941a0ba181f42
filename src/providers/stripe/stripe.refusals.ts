import type { ResultClass } from '../../domain/provider-outcome.js';

/**
 * The refusals that Stripe documents (docs.stripe.com/error-codes, /declines/codes). What is not
 * listed here is not understood, and what is not understood is ambiguous.
 */

type Refusal = Extract<ResultClass, 'rejected' | 'rejected_funds'>;

/** Codes of `invalid_request_error`, HTTP 400 or 404: refused before anything was executed. */
const INVALID_REQUESTS: Readonly<Record<string, Refusal>> = {
  account_closed: 'rejected',
  account_invalid: 'rejected',
  account_number_invalid: 'rejected',
  amount_too_large: 'rejected',
  amount_too_small: 'rejected',
  balance_insufficient: 'rejected_funds',
  country_unsupported: 'rejected',
  currency_not_supported: 'rejected',
  customer_max_payment_methods: 'rejected',
  insufficient_capabilities_for_transfer: 'rejected',
  insufficient_funds: 'rejected_funds',
  invalid_characters: 'rejected',
  invalid_currency: 'rejected',
  livemode_mismatch: 'rejected',
  not_allowed_on_standard_account: 'rejected',
  parameter_invalid_empty: 'rejected',
  parameter_invalid_integer: 'rejected',
  parameter_invalid_string_blank: 'rejected',
  parameter_invalid_string_empty: 'rejected',
  parameter_missing: 'rejected',
  parameter_unknown: 'rejected',
  parameters_exclusive: 'rejected',
  payment_intent_incompatible_payment_method: 'rejected',
  payment_intent_invalid_parameter: 'rejected',
  payment_method_currency_mismatch: 'rejected',
  payment_method_customer_decline: 'rejected',
  payment_method_invalid_parameter: 'rejected',
  payment_method_not_available: 'rejected',
  payment_method_unactivated: 'rejected',
  payment_method_unexpected_state: 'rejected',
  payment_method_unsupported_type: 'rejected',
  payouts_not_allowed: 'rejected',
  resource_missing: 'rejected',
  testmode_charges_only: 'rejected',
  transfers_not_allowed: 'rejected',
};

/**
 * Codes of `card_error`, HTTP 402. `processing_error` is left out: read the object. `authentication_required`
 * too: somebody could still authenticate, so the object is stopped first.
 */
const CARD_REFUSALS: Readonly<Record<string, Refusal>> = {
  card_decline_rate_limit_exceeded: 'rejected',
  card_declined: 'rejected',
  expired_card: 'rejected',
  incorrect_address: 'rejected',
  incorrect_cvc: 'rejected',
  incorrect_number: 'rejected',
  incorrect_zip: 'rejected',
  insufficient_funds: 'rejected_funds',
  invalid_cvc: 'rejected',
  invalid_expiry_month: 'rejected',
  invalid_expiry_year: 'rejected',
  invalid_number: 'rejected',
  payment_intent_authentication_failure: 'rejected',
  payment_method_provider_decline: 'rejected',
};

const FUNDS = ['insufficient_funds', 'withdrawal_count_limit_exceeded', 'card_velocity_exceeded'];

export const AUTHENTICATION_REQUIRED = 'authentication_required';
/** The object is not in a state for what was asked: what it is now must be read. */
export const UNEXPECTED_STATE = 'payment_intent_unexpected_state';

/** @returns null for a code that is not listed. */
export function invalidRequestRefusal(code: string): Refusal | null {
  return Object.hasOwn(INVALID_REQUESTS, code) ? (INVALID_REQUESTS[code] ?? null) : null;
}

/** @returns the class and the word for it; null for a code that is not listed, or that asks for the customer. */
export function cardRefusal(
  code: string,
  declineCode: string | null,
): { readonly class: Refusal; readonly code: string } | null {
  if (asksForCustomer(code, declineCode) || !Object.hasOwn(CARD_REFUSALS, code)) return null;
  if (declineCode !== null && FUNDS.includes(declineCode))
    return { class: 'rejected_funds', code: declineCode };
  return { class: CARD_REFUSALS[code] ?? 'rejected', code };
}

/** The issuer wants the customer present (off-session payments are declined with it). */
export function asksForCustomer(code: string, declineCode: string | null): boolean {
  return code === AUTHENTICATION_REQUIRED || declineCode === AUTHENTICATION_REQUIRED;
}
