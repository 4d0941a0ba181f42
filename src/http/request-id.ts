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
    'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
    'Referrer-Policy': 'no-referrer',
    // Answers are data: a browser that shows one anyway runs and embeds nothing of it.
    'Content-Security-Policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  };
}
