import { fromStripeAmount } from './stripe.money.js';

/** The two resources that move money here. */
export type StripeResource = 'transfer' | 'payment_intent';

/** A transfer or a PaymentIntent, in our words. `state` is Stripe's word, not yet understood. */
export interface StripeMovement {
  readonly resource: StripeResource;
  readonly id: string;
  readonly livemode: boolean;
  /** null: Stripe's count has no meaning in minor units, so it equals nothing. */
  readonly amountMinor: bigint | null;
  /** Upper case. */
  readonly currency: string;
  /** `acct_…`; `pm_…` or `cus_…:pm_…`. null: the object names none any more. */
  readonly destination: string | null;
  /** Transfers have no status: they are `created`, and later perhaps `reversed`. */
  readonly state: string;
  readonly paymentId: string | null;
  readonly generation: number | null;
  readonly providerKey: string | null;
  readonly transferGroup: string | null;
  /** PaymentIntents: the whole amount arrived. Transfers move at once. */
  readonly isWhole: boolean;
  /** Why the last try to charge it failed: Stripe's code and the issuer's. */
  readonly refusal: { readonly code: string; readonly declineCode: string | null } | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** Stripe's ids are a prefix and letters and digits; a path is built from them. */
const ID: Readonly<Record<StripeResource, RegExp>> = {
  transfer: /^tr_[0-9A-Za-z_-]{4,200}$/,
  payment_intent: /^pi_[0-9A-Za-z_-]{4,200}$/,
};

export function isIdOf(resource: StripeResource, id: string): boolean {
  return ID[resource].test(id);
}

/** @returns null when the value is not, in full, an object of that resource. */
export function readMovement(value: unknown, resource: StripeResource): StripeMovement | null {
  if (!isFields(value) || value['object'] !== resource) return null;
  const { id, amount, currency, livemode } = value;
  if (typeof id !== 'string' || !isIdOf(resource, id) || typeof livemode !== 'boolean') return null;
  if (typeof currency !== 'string' || !/^[a-z]{3}$/.test(currency) || !isAmount(amount)) return null;
  const specific = resource === 'transfer' ? readTransfer(value) : readIntent(value, amount);
  if (!specific) return null;
  const upper = currency.toUpperCase();
  const amountMinor = fromStripeAmount(BigInt(amount), upper);
  return { resource, id, livemode, amountMinor, currency: upper, ...metadataOf(value), ...specific };
}

/** The last id of a page, whatever else it holds; null: the page cannot be continued. */
export function idOf(value: unknown): string | null {
  const id = isFields(value) ? value['id'] : undefined;
  return typeof id === 'string' && /^[0-9A-Za-z_-]{4,200}$/.test(id) ? id : null;
}

/** Does the object name this payment in its metadata, even if the rest of it cannot be read? */
export function namesPayment(value: unknown, paymentId: string): boolean {
  const metadata = isFields(value) ? value['metadata'] : undefined;
  return isFields(metadata) && metadata['payment_id'] === paymentId;
}

/** @returns null when the value is not a list in Stripe's form. */
export function readList(
  value: unknown,
): { readonly data: readonly unknown[]; readonly hasMore: boolean } | null {
  if (!isFields(value) || value['object'] !== 'list') return null;
  const { data, has_more: hasMore } = value;
  return Array.isArray(data) && typeof hasMore === 'boolean' ? { data: data as unknown[], hasMore } : null;
}

type Specific = Pick<StripeMovement, 'destination' | 'state' | 'transferGroup' | 'isWhole' | 'refusal'>;

function readTransfer(value: Fields): Specific | null {
  const destination = referencedId(value['destination']);
  const group = value['transfer_group'];
  const reversed = value['amount_reversed'] ?? 0;
  if (destination === null || !isAmount(reversed)) return null;
  return {
    destination,
    state: reversed > 0 || value['reversed'] === true ? 'reversed' : 'created',
    transferGroup: typeof group === 'string' ? group : null,
    isWhole: true,
    refusal: null,
  };
}

function readIntent(value: Fields, amount: number): Specific | null {
  const { status } = value;
  if (typeof status !== 'string' || !/^[a-z_]{1,40}$/.test(status)) return null;
  const method = referencedId(value['payment_method']);
  const customer = referencedId(value['customer']);
  const received = value['amount_received'];
  return {
    destination: method === null ? null : customer === null ? method : `${customer}:${method}`,
    state: status,
    transferGroup: null,
    isWhole: received === undefined || received === amount,
    refusal: refusalOf(value['last_payment_error']),
  };
}

function refusalOf(value: unknown): StripeMovement['refusal'] {
  if (!isFields(value)) return null;
  return { code: wordOf(value['code']) ?? 'declined', declineCode: wordOf(value['decline_code']) };
}

function metadataOf(value: Fields): Pick<StripeMovement, 'paymentId' | 'generation' | 'providerKey'> {
  const metadata = isFields(value['metadata']) ? value['metadata'] : {};
  const { payment_id: paymentId, generation, provider_key: providerKey } = metadata;
  const isGeneration = typeof generation === 'string' && /^[1-9]\d{0,8}$/.test(generation);
  return {
    paymentId: typeof paymentId === 'string' ? paymentId : null,
    generation: isGeneration ? Number(generation) : null,
    providerKey: typeof providerKey === 'string' ? providerKey : null,
  };
}

/** A reference is an id, or the object itself where somebody asked to have it expanded. */
function referencedId(value: unknown): string | null {
  if (typeof value === 'string') return value;
  const id = isFields(value) ? value['id'] : undefined;
  return typeof id === 'string' ? id : null;
}

/** A number beyond 2^53 was rounded by JSON.parse: it is no amount. */
function isAmount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** A word of Stripe's lists; its free text never passes. */
export function wordOf(value: unknown): string | null {
  return typeof value === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(value) ? value : null;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
