import { assert } from './assert.js';
import { base32 } from './base32.js';
import type { IdempotencyKey } from './idempotency-key.js';

declare const paymentIdBrand: unique symbol;
declare const providerKeyBrand: unique symbol;

/** `pay_` and 32 characters of lower-case base32: 36 characters, safe in URLs and in every log. */
export type PaymentId = string & { readonly [paymentIdBrand]: true };

/** A UUID version 5 in lower case with hyphens: 36 characters, which every provider takes. */
export type ProviderKey = string & { readonly [providerKeyBrand]: true };

/** SHA-256 of the text's UTF-8 bytes: 32 bytes. An argument, because the domain has no hashes of its own. */
export type Sha256 = (text: string) => Uint8Array;

/** SHA-1 of the bytes: 20 bytes. Used for names only, as RFC 9562 asks of UUID version 5. */
export type Sha1 = (bytes: Uint8Array) => Uint8Array;

const PAYMENT_ID = /^pay_[a-z2-7]{32}$/;
/** 32 characters of base32 hold exactly this many bytes of the digest. */
const DIGEST_BYTES = 20;

/** 6f1d9c1e-5d0a-5c0e-9b61-2f6d1c7a4e10. Never changes: keys at providers hang on it. */
const PROVIDER_KEY_NAMESPACE = [
  0x6f, 0x1d, 0x9c, 0x1e, 0x5d, 0x0a, 0x5c, 0x0e, 0x9b, 0x61, 0x2f, 0x6d, 0x1c, 0x7a, 0x4e, 0x10,
] as const;

/**
 * The payment's id, derived from tenant and idempotency key and from nothing else, so that a row
 * lost to a restored backup and created again gets the same workflow and the same provider keys.
 * A holder of an id can guess a weak client key; the id gives no access.
 * @param tenant the tenant's id; must not hold NUL, which separates the parts.
 * @throws Error when the tenant is empty or holds NUL: a bug in the caller.
 * Twice: the same id.
 */
export function paymentId(of: {
  readonly tenant: string;
  readonly key: IdempotencyKey;
  readonly sha256: Sha256;
}): PaymentId {
  assert(of.tenant !== '' && !of.tenant.includes('\0'), 'a tenant id is never empty and never holds NUL');
  const digest = of.sha256(`payment/v1\0${of.tenant}\0${of.key}`);
  assert(digest.length === 32, 'SHA-256 gives 32 bytes');
  return `pay_${base32(digest.subarray(0, DIGEST_BYTES))}` as PaymentId;
}

/** True for text in the form of a payment id; says nothing about whether the payment exists. */
export function isPaymentId(text: string): text is PaymentId {
  return PAYMENT_ID.test(text);
}

/**
 * The key under which one generation is known to the provider: UUID version 5 (RFC 9562) over
 * `<payment id>/<generation>`. Computed once, when the generation opens, and stored; never
 * computed again for a generation that has a row.
 * @param generation a whole number from 1.
 * @throws Error for another generation or a text that is no payment id: a bug in the caller.
 */
export function providerKey(id: PaymentId, generation: number, sha1: Sha1): ProviderKey {
  assert(isPaymentId(id), 'a provider key hangs on a payment id');
  assert(Number.isSafeInteger(generation) && generation >= 1, 'generations count from 1');
  const name = `${id}/${generation}`;
  const bytes = new Uint8Array(PROVIDER_KEY_NAMESPACE.length + name.length);
  bytes.set(PROVIDER_KEY_NAMESPACE);
  // The name is ASCII: its code units are its bytes.
  for (let i = 0; i < name.length; i++) bytes[PROVIDER_KEY_NAMESPACE.length + i] = name.charCodeAt(i);
  const uuid = sha1(bytes).slice(0, 16);
  assert(uuid.length === 16, 'SHA-1 gives at least 16 bytes');
  uuid[6] = ((uuid[6] ?? 0) & 0x0f) | 0x50;
  uuid[8] = ((uuid[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(uuid, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
    '-',
  ) as ProviderKey;
}
