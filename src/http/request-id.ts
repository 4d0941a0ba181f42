import { newUuid } from '../platform/ids.js';

/**
 * The id of a request is made here, never taken from the client: it stands in logs, in the
 * `Request-Id` header and in problems, and a client must not choose what is written there.
 */
export function newRequestId(): string {
  return newUuid();
}

/** On every answer, also on refusals and on errors before any route was found. */
export function headersOfEveryAnswer(requestId: string): Readonly<Record<string, string>> {
  return {
    'Request-Id': requestId,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  };
}
