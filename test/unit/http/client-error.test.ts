import { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { answerClientError } from '../../../src/http/client-error.js';

/** A socket that remembers what was written and whether it was ended or destroyed. */
class FakeSocket extends Duplex {
  written = '';
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written += chunk.toString();
    done();
  }
}

const answerTo = (code: string, socket = new FakeSocket()): FakeSocket => {
  answerClientError(Object.assign(new Error('secret'), { code }), socket as unknown as Socket);
  return socket;
};

describe('the answer to bytes that are no request', () => {
  it.each([
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'request_timeout'],
    ['HPE_HEADER_OVERFLOW', 431, 'header_too_large'],
    ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 413, 'payload_too_large'],
    ['HPE_INVALID_METHOD', 400, 'malformed_request'],
    ['SOMETHING_NEW', 400, 'malformed_request'],
  ])('%s is %i %s, whole and last', (nodeCode, status, code) => {
    const { written, writableEnded } = answerTo(nodeCode);
    const [head = '', body = ''] = written.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
    expect(head).toContain('Connection: close');
    expect(head).toContain('Content-Type: application/problem+json');
    expect(head).toContain(`Content-Length: ${Buffer.byteLength(body)}`);
    expect(JSON.parse(body)).toMatchObject({ status, code });
    expect(written).not.toContain('secret');
    expect(writableEnded).toBe(true);
  });

  it('says nothing on a connection that was reset or is closed', () => {
    const reset = answerTo('ECONNRESET');
    expect(reset.written).toBe('');
    expect(reset.destroyed).toBe(true);
    const closed = new FakeSocket();
    closed.destroy();
    expect(answerTo('HPE_INVALID_METHOD', closed).written).toBe('');
  });

  it('leaves the last word to a whole request before them, which still waits for its answer', () => {
    const pending = { headersSent: false, shouldKeepAlive: true, req: { complete: true } };
    const socket = Object.assign(new FakeSocket(), { _httpMessage: pending });
    expect(answerTo('HPE_INVALID_METHOD', socket).written).toBe('');
    expect([socket.destroyed, pending.shouldKeepAlive]).toEqual([false, false]);
  });

  it('says nothing while another answer is on its way', () => {
    const socket = Object.assign(new FakeSocket(), {
      _httpMessage: { headersSent: true, req: { complete: false } },
    });
    expect(answerTo('HPE_INVALID_METHOD', socket).written).toBe('');
    expect(socket.destroyed).toBe(true);
  });
});
