import { createHmac, timingSafeEqual } from 'node:crypto';
import type { WebhookHeaders } from './payment-provider.js';

/** What is wrong with a signature; null: nothing. */
export type SignatureRefusal = 'unsigned' | 'forged' | 'too_old' | 'from_future';

export interface SignedRequest {
  readonly raw: Buffer;
  readonly headers: WebhookHeaders;
  /** Any of them may have made the signature: two while one is being replaced. */
  readonly secrets: readonly string[];
  /** The wall clock, epoch milliseconds. */
  readonly nowMs: number;
}

/** A delivery may have waited this long on its way; a replay of an older one is refused. */
const OLDEST_MS = 300_000;
/** A sender's clock may be this much ahead of ours. */
const AHEAD_MS = 60_000;
/** One per secret while secrets are replaced; more is somebody trying. */
const MOST_SIGNATURES = 16;

/**
 * Checks `t=<epoch seconds>,v1=<hex>[,v1=…]`: HMAC-SHA-256 over `<t>.<raw body>` under the secret's
 * text as it stands, as Stripe signs (docs.stripe.com/webhooks, "verify manually").
 * @param headerName in lower case.
 */
export function checkTimestampedSignature(
  headerName: string,
  { raw, headers, secrets, nowMs }: SignedRequest,
): SignatureRefusal | null {
  const parts = (single(headers, headerName) ?? '').split(',').map((part) => part.trim());
  const seconds = parts.find((part) => /^t=\d{1,12}$/.test(part))?.slice(2);
  const signatures = parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice(3));
  if (seconds === undefined || signatures.length === 0) return 'unsigned';
  const given = signatures.slice(0, MOST_SIGNATURES).map((hex) => Buffer.from(hex, 'hex'));
  const keys = secrets.map((secret) => Buffer.from(secret, 'utf8'));
  if (!isSignedByAny(keys, `${seconds}.`, raw, given)) return 'forged';
  return checkTime(Number(seconds) * 1000, nowMs);
}

/**
 * Checks `webhook-id`, `webhook-timestamp` and `webhook-signature: v1,<base64>[ v1,…]`: HMAC-SHA-256
 * over `<id>.<timestamp>.<raw body>` under the bytes that the secret holds in base64, with or without
 * the prefix `whsec_` (standardwebhooks.com, specification, "signature scheme").
 */
export function checkStandardWebhook(request: SignedRequest): SignatureRefusal | null {
  const { raw, headers, secrets, nowMs } = request;
  const id = single(headers, 'webhook-id') ?? '';
  const seconds = single(headers, 'webhook-timestamp') ?? '';
  const signatures = (single(headers, 'webhook-signature') ?? '')
    .split(' ')
    .filter((part) => part.startsWith('v1,'))
    .map((part) => part.slice(3));
  if (id === '' || !/^\d{1,12}$/.test(seconds) || signatures.length === 0) return 'unsigned';
  const given = signatures.slice(0, MOST_SIGNATURES).map((text) => Buffer.from(text, 'base64'));
  const keys = secrets.map((secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64'));
  if (!isSignedByAny(keys, `${id}.${seconds}.`, raw, given)) return 'forged';
  return checkTime(Number(seconds) * 1000, nowMs);
}

/** Compares every signature with every key's, in constant time and without stopping at a hit. */
function isSignedByAny(
  keys: readonly Buffer[],
  prefix: string,
  raw: Buffer,
  given: readonly Buffer[],
): boolean {
  let isSigned = false;
  for (const key of keys) {
    // Anybody can sign with an empty key.
    if (key.length === 0) continue;
    const right = createHmac('sha256', key).update(prefix).update(raw).digest();
    for (const signature of given) {
      if (signature.length === right.length && timingSafeEqual(signature, right)) isSigned = true;
    }
  }
  return isSigned;
}

function checkTime(signedAtMs: number, nowMs: number): SignatureRefusal | null {
  if (nowMs - signedAtMs > OLDEST_MS) return 'too_old';
  return signedAtMs - nowMs > AHEAD_MS ? 'from_future' : null;
}

/** A header that was sent twice says nothing that can be relied on. */
function single(headers: WebhookHeaders, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value : null;
}
