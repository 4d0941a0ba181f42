import { isRecord } from './fault.js';
import type { PayoutForm } from './payout-book.js';

/** What a client asks for when it makes a payout. */
export interface PayoutParameters {
  readonly form: PayoutForm;
  /** Set where the form decides it and not the profile. 1: creating moves the money. */
  readonly phases?: 1 | 2;
  /** Whole minor units. */
  readonly amount: number;
  readonly currency: string;
  readonly destination: string;
  readonly reference: string;
  readonly description: string | null;
  readonly clientReference: string | null;
  /** What only this form has. */
  readonly details: Readonly<Record<string, unknown>> | null;
}

export type ReadParameters =
  | { readonly kind: 'parameters'; readonly parameters: PayoutParameters }
  | { readonly kind: 'wrong'; readonly parameter: string };

const FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  amount: (value) => Number.isSafeInteger(value) && (value as number) > 0 && (value as number) < 1e12,
  currency: (value) => typeof value === 'string' && /^[A-Z]{3}$/.test(value),
  destination: (value) => isText(value, 256),
  reference: (value) => isText(value, 128),
  description: (value) => value === undefined || isText(value, 500),
  client_reference: (value) => value === undefined || isText(value, 256),
};

/** Reads a request body; `wrong` names the first member that is missing, malformed or unknown. */
export function readPayoutParameters(body: string): ReadParameters {
  let given: unknown;
  try {
    given = JSON.parse(body);
  } catch {
    return { kind: 'wrong', parameter: 'body' };
  }
  if (!isRecord(given)) return { kind: 'wrong', parameter: 'body' };
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(FIELDS, name));
  if (unknown !== undefined) return { kind: 'wrong', parameter: unknown };
  for (const [name, fits] of Object.entries(FIELDS)) {
    if (!fits(given[name])) return { kind: 'wrong', parameter: name };
  }
  return {
    kind: 'parameters',
    parameters: {
      form: 'payout',
      amount: given['amount'] as number,
      currency: given['currency'] as string,
      destination: given['destination'] as string,
      reference: given['reference'] as string,
      description: (given['description'] as string | undefined) ?? null,
      clientReference: (given['client_reference'] as string | undefined) ?? null,
      details: null,
    },
  };
}

function isText(value: unknown, maxLength: number): boolean {
  return typeof value === 'string' && value.length > 0 && value.length <= maxLength;
}
