import { randomFillSync } from 'node:crypto';

/** Random bytes are fetched for many ids at once: one system call each would cost more than the id. */
const POOL_BYTES = 4_096;
const RANDOM_BYTES = 10;
const pool = Buffer.allocUnsafe(POOL_BYTES);
let used = POOL_BYTES;

/**
 * A new UUID version 7 (RFC 9562): 48 bits of this machine's clock in milliseconds, then 74 random
 * bits. Sorts by time; unique without coordination. For requests, workers and rows that have no
 * natural identity; never for payments, whose id is derived.
 */
export function newUuid(nowMs: number = Date.now()): string {
  if (used + RANDOM_BYTES > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.toString('hex', used, used + RANDOM_BYTES);
  const variant = ((pool[used + 2] ?? 0) & 0x3f) | 0x80;
  used += RANDOM_BYTES;
  const time = nowMs.toString(16).padStart(12, '0');
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(1, 4)}-` +
    `${variant.toString(16)}${random.slice(6, 8)}-${random.slice(8, 20)}`
  );
}
