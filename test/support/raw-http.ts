import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/**
 * Sends a request byte by byte as written, one Latin-1 character per byte, for what no HTTP client
 * would send: two headers of one name, control characters, bytes outside ASCII.
 * @param head request line and headers; Host and Connection are added.
 */
export function rawRequest(url: string, head: readonly string[], body = ''): Promise<RawAnswer> {
  const { hostname, port, host } = new URL(url);
  const bytes = Buffer.from([...head, `Host: ${host}`, 'Connection: close', '', body].join('\r\n'), 'latin1');
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const chunks: Buffer[] = [];
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      const [start = '', ...rest] = Buffer.concat(chunks).toString('utf8').split('\r\n\r\n');
      const [statusLine = '', ...lines] = start.split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [
          line.slice(0, line.indexOf(':')).toLowerCase(),
          line.slice(line.indexOf(':') + 1).trim(),
        ]),
      );
      resolve({ status: Number(statusLine.split(' ')[1]), headers, text: rest.join('\r\n\r\n') });
    });
  });
}
