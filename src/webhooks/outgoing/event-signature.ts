import { createHmac, randomBytes } from 'node:crypto';
import { assert } from '../../domain/assert.js';

/** 32 random bytes: as long as the digest that they key (Standard Webhooks asks for 24 to 64). */
const SECRET_BYTES = 32;
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

/** A new signing secret, `whsec_` and base64. */
export function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

export interface SignedMessage {
  readonly id: string;
  /** When it is sent, epoch ms of this machine; receivers refuse what is minutes off. */
  readonly nowMs: number;
  readonly body: string;
}

/**
 * The headers of Standard Webhooks: HMAC-SHA-256 over `<id>.<seconds>.<body>`, one signature for each
 * secret, newest first, so that a receiver with either of two secrets can verify while one is replaced.
 */
export function signatureHeaders(
  { id, nowMs, body }: SignedMessage,
  secrets: readonly string[],
): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const seconds = String(Math.floor(nowMs / 1_000));
  const signatures = secrets.map((secret) => {
    assert(SECRET.test(secret), 'a signing secret has the form that newSecret gives it');
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`, 'utf8').digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures.join(' ') };
}
