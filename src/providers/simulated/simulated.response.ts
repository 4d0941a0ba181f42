import type { ReturnedMoney } from '../payment-provider.js';
import { parseWithExactAmount } from './simulated.json.js';

/** A payout in the provider's form. `status` is its word, not yet understood. */
export interface Payout {
  readonly id: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly destination: string;
  readonly reference: string;
  readonly status: string;
  readonly failureCode: string | null;
  /** The money came back after `succeeded`; null: it did not. */
  readonly returned: ReturnedMoney | null;
}

/** @returns null when the body is not, in full, a payout of this provider's test world. */
export function readPayout(body: string): Payout | null {
  return payoutOf(parseWithExactAmount(body));
}

/** @returns null when the body is not a list, or when any of its entries is not a payout. */
export function readList(
  body: string,
): { readonly payouts: readonly Payout[]; readonly hasMore: boolean } | null {
  const list = parseWithExactAmount(body);
  if (!isObject(list) || list['object'] !== 'list' || !Array.isArray(list['data'])) return null;
  if (typeof list['has_more'] !== 'boolean') return null;
  const payouts: Payout[] = [];
  for (const entry of list['data'] as unknown[]) {
    const payout = payoutOf(entry);
    if (!payout) return null;
    payouts.push(payout);
  }
  return { payouts, hasMore: list['has_more'] };
}

/** @returns null when the body is not in the provider's error form. */
export function readError(body: string): { readonly code: string } | null {
  const content = parseWithExactAmount(body);
  const error = isObject(content) ? content['error'] : undefined;
  if (!isObject(error) || typeof error['type'] !== 'string') return null;
  const { code } = error;
  return typeof code === 'string' && /^[a-z0-9_]{1,64}$/.test(code) ? { code } : null;
}

/** @returns null when the value is not, in full, a payout of this provider's test world. */
export function payoutOf(value: unknown): Payout | null {
  if (!isObject(value)) return null;
  const { id, amount, currency, destination, reference, status } = value;
  const failureCode = value['failure_code'];
  if (value['object'] !== 'payout' || value['livemode'] !== false) return null;
  if (typeof id !== 'string' || !isPayoutId(id)) return null;
  if (typeof amount !== 'bigint' || typeof currency !== 'string') return null;
  if (typeof destination !== 'string' || typeof reference !== 'string' || typeof status !== 'string')
    return null;
  if (failureCode !== null && typeof failureCode !== 'string') return null;
  const returned = returnOf(value['returned'], currency);
  if (returned === undefined) return null;
  return { id, amountMinor: amount, currency, destination, reference, status, failureCode, returned };
}

/** A return is in the payout's currency. @returns undefined when it is not in the provider's form. */
function returnOf(value: unknown, currency: string): ReturnedMoney | null | undefined {
  // Older payouts lack the member.
  if (value === null || value === undefined) return null;
  if (!isObject(value)) return undefined;
  const { id, amount, code } = value;
  if (typeof id !== 'string' || !/^[0-9A-Za-z_]{8,64}$/.test(id)) return undefined;
  if (typeof amount !== 'bigint' || typeof code !== 'string' || !/^[a-z0-9_]{1,64}$/.test(code))
    return undefined;
  return { returnId: id, amountMinor: amount, currency, code };
}

/** Only what has the form of the provider's ids is put into a path. */
export function isPayoutId(id: string): boolean {
  return /^po_[0-9A-Za-z]{8,64}$/.test(id);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
