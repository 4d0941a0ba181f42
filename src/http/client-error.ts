import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DomainError, type ProblemCode } from '../domain/domain-error.js';
import { problemAnswer } from './problem.js';
import { headersOfEveryAnswer, newRequestId } from './request-id.js';

const BY_NODE_CODE: Readonly<Record<string, ProblemCode>> = Object.freeze({
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'header_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
});

/** The answer that a socket waits for, as Node keeps it. */
type Pending = Pick<ServerResponse, 'headersSent' | 'shouldKeepAlive'> & {
  readonly req: Pick<IncomingMessage, 'complete'>;
};

/**
 * Answers bytes that never became a request (Node's `clientError`): 400, 408, 413 or 431 as a
 * problem, written on the socket itself, which is then closed. A socket that is gone, or on which
 * another answer has begun, is only closed: two answers must not mix. When a whole request before these
 * bytes still waits for its answer, that answer goes out and is the last: a 400 in its place would say
 * of a payment that it was refused.
 */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  const pending = (socket as { _httpMessage?: Pending | null })._httpMessage ?? null;
  if (error.code !== 'ECONNRESET' && pending?.req.complete === true && !pending.headersSent) {
    pending.shouldKeepAlive = false;
    return;
  }
  if (error.code === 'ECONNRESET' || !socket.writable || pending?.headersSent === true) {
    socket.destroy();
    return;
  }
  const requestId = newRequestId();
  const code = BY_NODE_CODE[error.code ?? ''] ?? 'malformed_request';
  const { status, headers, body } = problemAnswer(new DomainError(code), requestId, Math.random);
  const lines = Object.entries({
    ...headersOfEveryAnswer(requestId),
    ...headers,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`);
}

/** Answers an `Expect` header other than `100-continue`, to which Node says an empty 417. */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const requestId = newRequestId();
  const { status, headers, body } = problemAnswer(
    new DomainError('expectation_failed'),
    requestId,
    Math.random,
  );
  response.writeHead(status, {
    ...headersOfEveryAnswer(requestId),
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  });
  response.end(body);
}
