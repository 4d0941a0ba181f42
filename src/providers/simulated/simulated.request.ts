import { PrepareRefused } from '../payment-provider.js';
import type { CanonicalPayment } from '../payment-provider.js';
import { parseWithExactAmount } from './simulated.json.js';

/** What we told the provider to do; an answer must say the same. */
export interface Instruction {
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly destination: string;
  /** `<payment id>/<generation>`. */
  readonly reference: string;
}

/** The largest amount has 12 digits: far below 2^53, so a JSON number holds it exactly. */
export const MAX_AMOUNT_MINOR = 999_999_999_999n;

/** How the provider finds our payment again: a generation has a reference of its own. */
export function referenceOf(payment: { readonly paymentId: string; readonly generation: number }): string {
  return `${payment.paymentId}/${payment.generation}`;
}

/** Reads back what `referenceOf` wrote; null when the reference is none of ours. */
export function paymentOf(
  reference: string,
): { readonly paymentId: string; readonly generation: number } | null {
  const match = /^(.{1,120})\/([1-9]\d{0,4})$/.exec(reference);
  const [, paymentId, generation] = match ?? [];
  return paymentId === undefined ? null : { paymentId, generation: Number(generation) };
}

/**
 * The text of the request's parameters, in one fixed order.
 * @throws PrepareRefused for what the provider's form cannot hold.
 */
export function parametersOf(payment: CanonicalPayment): string {
  const { amountMinor, currency, destination, description, reference } = payment;
  if (amountMinor < 1n || amountMinor > MAX_AMOUNT_MINOR) throw new PrepareRefused('amount_out_of_range');
  if (!/^[A-Z]{3}$/.test(currency)) throw new PrepareRefused('currency_unusable');
  requireText(destination, 256, 'destination_unusable');
  requireText(referenceOf(payment), 128, 'reference_unusable');
  if (description !== null) requireText(description, 500, 'description_unusable');
  if (reference !== null) requireText(reference, 256, 'client_reference_unusable');
  return JSON.stringify({
    amount: Number(amountMinor),
    currency,
    destination,
    reference: referenceOf(payment),
    ...(description !== null && { description }),
    ...(reference !== null && { client_reference: reference }),
  });
}

/** Reads back what `parametersOf` wrote; null when the text is anything else. */
export function instructionOf(parameters: string): Instruction | null {
  const read = parseWithExactAmount(parameters);
  if (typeof read !== 'object' || read === null) return null;
  const { amount, currency, destination, reference } = read as Record<string, unknown>;
  if (typeof amount !== 'bigint' || typeof currency !== 'string') return null;
  if (typeof destination !== 'string' || typeof reference !== 'string') return null;
  return { amountMinor: amount, currency, destination, reference };
}

function requireText(text: string, maxLength: number, code: string): void {
  if (text.length === 0 || text.length > maxLength || !text.isWellFormed()) throw new PrepareRefused(code);
}
