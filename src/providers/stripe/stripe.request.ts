import { PrepareRefused } from '../payment-provider.js';
import type { CanonicalPayment } from '../payment-provider.js';
import { isFields } from './stripe.object.js';
import type { StripeResource } from './stripe.object.js';
import { fromStripeAmount, toStripeAmount } from './stripe.money.js';

/** What we told Stripe to do; an answer must say the same. */
export interface Instruction {
  readonly resource: StripeResource;
  /** Minor units of ISO 4217. */
  readonly amountMinor: bigint;
  /** Upper case. */
  readonly currency: string;
  readonly destination: string;
  readonly paymentId: string;
  readonly generation: number;
  readonly providerKey: string;
}

/** Stripe says `up to eight digits` for charges; transfers have no published limit. */
export const MAX_INTENT_AMOUNT = 99_999_999n;
export const MAX_TRANSFER_AMOUNT = 999_999_999_999n;

const ACCOUNT = /^acct_[0-9A-Za-z_-]{4,64}$/;
/** A payment method, alone or of a customer. Joined by a colon, which no id contains. */
const METHOD = /^(?:(cus_[0-9A-Za-z_-]{4,64}):)?(pm_[0-9A-Za-z_-]{4,64})$/;
const CUSTOMER_ALONE = /^cus_[0-9A-Za-z_-]{4,64}$/;

/**
 * The parameters of the request, as text in one fixed order: what is stored, hashed and sent.
 * @throws PrepareRefused: destination_of_other_provider (the other of Stripe's two names takes it),
 * bank_destination_unsupported (`ba_`, `card_`: Stripe's payouts have no filter by reference, so a
 * lost answer could never be looked up), payment_method_required (a customer alone does not say what
 * is charged, and a default can change between create and confirm), destination_unusable,
 * amount_out_of_range, and those of the currency. Twice: the same text.
 */
export function parametersOf(payment: CanonicalPayment, resource: StripeResource): string {
  const destination = destinationOf(payment.destination, resource);
  const amount = toStripeAmount(payment.amountMinor, payment.currency);
  const largest = resource === 'transfer' ? MAX_TRANSFER_AMOUNT : MAX_INTENT_AMOUNT;
  if (amount < 1n || amount > largest) throw new PrepareRefused('amount_out_of_range');
  const { description, reference, paymentId, generation, providerKey } = payment;
  requireText(description, 'description_unusable');
  requireText(reference, 'client_reference_unusable');
  return JSON.stringify({
    amount: Number(amount),
    currency: payment.currency.toLowerCase(),
    ...destination,
    ...(description !== null && { description }),
    ...(resource === 'transfer' && { transfer_group: paymentId }),
    metadata: {
      payment_id: paymentId,
      generation: String(generation),
      provider_key: providerKey,
      ...(reference !== null && { client_reference: reference }),
    },
  });
}

/** Reads back what `parametersOf` wrote; null when the text is anything else. */
export function instructionOf(parameters: string): (Instruction & { readonly body: object }) | null {
  const body = parse(parameters);
  const metadata = isFields(body) ? body['metadata'] : undefined;
  if (!isFields(body) || !isFields(metadata)) return null;
  const { amount, currency } = body;
  const { payment_id: paymentId, generation, provider_key: providerKey } = metadata;
  if (!Number.isSafeInteger(amount) || typeof currency !== 'string') return null;
  if (typeof paymentId !== 'string' || typeof generation !== 'string' || typeof providerKey !== 'string')
    return null;
  const upper = currency.toUpperCase();
  const amountMinor = fromStripeAmount(BigInt(amount as number), upper);
  const target = targetOf(body);
  if (amountMinor === null || target === null) return null;
  const names = { paymentId, generation: Number(generation), providerKey };
  return { ...target, amountMinor, currency: upper, ...names, body };
}

/** What Stripe's two ways of naming a destination come to, in our one word. */
function targetOf(
  body: Readonly<Record<string, unknown>>,
): Pick<Instruction, 'resource' | 'destination'> | null {
  const { destination, customer, payment_method: method } = body;
  if (typeof destination === 'string') return { resource: 'transfer', destination };
  if (typeof method !== 'string') return null;
  const whole = typeof customer === 'string' ? `${customer}:${method}` : method;
  return { resource: 'payment_intent', destination: whole };
}

function destinationOf(destination: string, resource: StripeResource): object {
  if (/^(ba|card)_/.test(destination)) throw new PrepareRefused('bank_destination_unsupported');
  const method = METHOD.exec(destination);
  const belongsTo = ACCOUNT.test(destination) ? 'transfer' : method ? 'payment_intent' : null;
  if (belongsTo === null) {
    const isCustomer = resource === 'payment_intent' && CUSTOMER_ALONE.test(destination);
    throw new PrepareRefused(isCustomer ? 'payment_method_required' : 'destination_unusable');
  }
  if (belongsTo !== resource) throw new PrepareRefused('destination_of_other_provider');
  if (!method) return { destination };
  return {
    ...(method[1] !== undefined && { customer: method[1] }),
    payment_method: method[2],
    // Cards answer at once. `manual`: only the secret key can release the object, never a client secret.
    payment_method_types: ['card'],
    confirmation_method: 'manual',
  };
}

/** Stripe's limit for a value of metadata; a description may be longer, ours never is. */
function requireText(text: string | null, code: string): void {
  if (text !== null && (text.length === 0 || text.length > 500 || !text.isWellFormed()))
    throw new PrepareRefused(code);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
