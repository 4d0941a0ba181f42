import { createHmac, timingSafeEqual } from 'node:crypto';
import type { KeysFile } from '../config/config.js';
import { instantFromMicros } from '../domain/instant.js';
import { isPaymentId } from '../domain/payment-id.js';
import { sha256Hex } from '../platform/sha256.js';
import type { ListPosition, PaymentFilter } from './payment-list.store.js';

/**
 * Opaque cursors of lists: where the page before ended, signed, so that a client can neither make
 * one up nor carry one to other filters or to another tenant. Microseconds, because a cursor cut to
 * milliseconds skips rows.
 */
const FORM = /^1\.([a-z0-9-]{1,32})\.(-?\d{1,19})\.(pay_[a-z2-7]{32})\.([A-Za-z0-9_-]{43})$/;
const LONGEST = 200;

export class ListCursors {
  constructor(private readonly keys: KeysFile['cursor']) {}

  /** The cursor that continues below `position`. Same input, same cursor. */
  write(position: ListPosition, tenantId: string, filter: PaymentFilter): string {
    const body = `1.${this.keys.active}.${position.createdAt}.${position.id}`;
    const mac = this.sign(this.keys.active, body, tenantId, filter);
    return Buffer.from(`${body}.${mac?.toString('base64url')}`).toString('base64url');
  }

  /** The position inside a cursor of ours for this tenant and these filters, else null. */
  read(cursor: string, tenantId: string, filter: PaymentFilter): ListPosition | null {
    if (cursor.length > 2 * LONGEST) return null;
    const text = Buffer.from(cursor, 'base64url').toString('latin1');
    const m = FORM.exec(text);
    // Several texts decode to the same bytes; only the one we wrote is ours.
    if (!m || Buffer.from(text, 'latin1').toString('base64url') !== cursor) return null;
    const [, keyId = '', micros = '', id = '', mac = ''] = m;
    const expected = this.sign(keyId, text.slice(0, -mac.length - 1), tenantId, filter);
    const given = Buffer.from(mac, 'base64url');
    if (!expected || given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
    return isPaymentId(id) ? { createdAt: instantFromMicros(BigInt(micros)), id } : null;
  }

  private sign(keyId: string, body: string, tenantId: string, filter: PaymentFilter): Buffer | null {
    const key = this.keys.keys[keyId];
    if (key === undefined) return null;
    return createHmac('sha256', Buffer.from(key, 'base64'))
      .update(JSON.stringify([body, tenantId, filterDigest(filter)]))
      .digest();
  }
}

/** The same for equal filters whatever the order of their members. */
function filterDigest(filter: PaymentFilter): string {
  const pairs = Object.entries(filter)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]: [string, unknown]): [string, unknown] => [
      name,
      typeof value === 'bigint' ? value.toString() : value,
    ])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  return sha256Hex(JSON.stringify(pairs));
}
