import type { IncomingMessage } from 'node:http';

/**
 * Collects a request's body as text.
 * @param maxBytes a longer body is not collected: the callback gets null.
 * @param done called once; never when the client leaves before the end.
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  done: (body: string | null) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size <= maxBytes) chunks.push(chunk);
  });
  request.on('end', () => done(size <= maxBytes ? Buffer.concat(chunks).toString('utf8') : null));
  // A client that leaves half-way is nobody's fault here; without a listener it would be thrown.
  request.on('error', () => undefined);
}
