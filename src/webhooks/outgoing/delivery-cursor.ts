import { formatInstant, instantFromPostgres, instantToPostgres, parseInstant } from '../../domain/instant.js';
import { eventId, readEventId } from './event.js';
import type { LogPosition } from './delivery-log.store.js';

/**
 * Cursors of the delivery log: the place where a page ended. Not signed: the endpoint and the tenant come
 * from the request, so a cursor that somebody makes up shows another part of the same log.
 */

export function writeCursor(position: LogPosition): string {
  const at = formatInstant(instantFromPostgres(position.createdAt));
  return Buffer.from(`${at} ${eventId(position)}`).toString('base64url');
}

/** Null for a text that no `writeCursor` wrote. */
export function readCursor(text: string): LogPosition | null {
  const [at = '', id = '', ...more] = Buffer.from(text, 'base64url').toString('latin1').split(' ');
  const createdAt = parseInstant(at);
  const event = readEventId(id);
  if (createdAt === null || event === null || more.length > 0) return null;
  return { createdAt: instantToPostgres(createdAt), ...event };
}
