import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { payments, type Ran } from '../../support/command-line.js';

const ID = `pay_${'a2'.repeat(16)}`;
const PROPOSAL = '019b1f0a-0000-7000-8000-000000000000';

interface Asked {
  readonly what: string;
  readonly subject: string;
  readonly ifMatch: string | undefined;
  readonly body: unknown;
}

let server: Server;
let url: string;
let folder: string;
let asked: Asked[] = [];
let reply: { status: number; body: object } = { status: 200, body: {} };

const subjectOf = (request: IncomingMessage): string => {
  const claims = request.headers.authorization?.split('.')[1] ?? '';
  return (JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}') as { sub?: string }).sub ?? '';
};

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      asked.push({
        what: `${request.method} ${request.url}`,
        subject: subjectOf(request),
        ifMatch: request.headers['if-match'],
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      });
      response.writeHead(reply.status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(reply.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise<void>((resolve) => void server.close(() => resolve())));

function writeStack(changes: object = {}, key: object = {}): void {
  const { privateKey } = generateKeyPairSync('ed25519');
  const keyFile = join(folder, 'issuer-key.json');
  writeFileSync(
    keyFile,
    JSON.stringify({
      ...{ development: true, issuer: 'http://i', audience: 'payments', kid: 'k' },
      private_key: privateKey.export({ format: 'jwk' }),
      ...key,
    }),
  );
  const person = (subject: string, role: string) => ({ subject, tenant: 'local', roles: [role] });
  writeFileSync(
    join(folder, 'stack.json'),
    JSON.stringify({
      state: 'running',
      api_url: url,
      api_keys: { client: 'c' },
      people: {
        'operator-1': person('operator-1', 'operator'),
        'approver-1': person('approver-1', 'approver'),
      },
      issuer_key_file: keyFile,
      environment: { PAYMENTS_MODE: 'development' },
      ...changes,
    }),
  );
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'payments-test-people-'));
  asked = [];
  reply = { status: 200, body: {} };
  writeStack();
});
afterEach(() => rmSync(folder, { recursive: true }));

const local = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> =>
  payments(args, { PAYMENTS_LOCAL_DIR: folder, ...env });

const review = {
  payment_id: ID, reason: 'inquiry_exhausted', state: 'needs_review', version: 4, owner: null,
  opened_at: '2026-12-01T08:30:00.000000Z', due_at: '2026-12-01T12:30:00.000000Z', age_seconds: 4_000, overdue: true,
  amount_at_risk: 1_999, currency: 'EUR', provider: 'simulated', open_resolution: null, closed_by: null, close_reason: null,
}; // prettier-ignore

describe('the commands of people', () => {
  it('propose as an operator and approve as an approver, each with a token of their own', async () => {
    const by = { id: PROPOSAL, outcome: 'failed', proposed_by: 'person:operator-1', expires_at: 't' };
    reply = { status: 202, body: by };
    const proposed = await local(['resolve', ID, '--if-version', '4', '--outcome', 'failed', '--reason', 'provider_refused',
      '--evidence', '7', '--evidence', '9', '--proof', 'provider_statement', '--statement', 'mail']); // prettier-ignore
    expect(proposed).toMatchObject({ exitCode: 0, err: '' });
    expect(proposed.out).toContain(`payments approve ${ID} ${PROPOSAL}`);
    await local(['approve', ID, PROPOSAL, '--if-version', '4', '--json']);
    expect(asked).toEqual([
      {
        what: `POST /v1/payments/${ID}/resolutions`,
        subject: 'operator-1',
        ifMatch: '"v4"',
        body: {
          outcome: 'failed',
          reason_code: 'provider_refused',
          evidence: ['7', '9'],
          proof: { kind: 'provider_statement', statement: 'mail' },
        },
      },
      {
        what: `POST /v1/payments/${ID}/resolutions/${PROPOSAL}/approve`,
        subject: 'approver-1',
        ifMatch: '"v4"',
        body: undefined,
      },
    ]);
  });

  it('show what waits, what is overdue and what is at risk', async () => {
    reply = { status: 200, body: { data: [review], next_cursor: '17' } };
    const list = await local(['review', 'list', '--limit', '1']);
    expect(list.out).toContain('19.99 EUR');
    expect(list.out).toContain('1 h 6 min');
    expect(list.out).toContain('overdue since');
    expect(list.out).toContain('--cursor 17');
    reply = { status: 200, body: { data: [], next_cursor: null } };
    expect((await local(['review', 'list'])).out).toContain('Nothing waits for people.');
    const row = { id: '7', at: 't', source: 'lookup', evidence: 'absent', status: null };
    reply = { status: 200, body: { ...review, evidence: [row], resolutions: [] } };
    expect((await local(['review', 'show', ID])).out).toContain('absent');
    await local(['review', 'own', ID, '--as', 'approver-1']);
    await local(['review', 'close', ID, '--reason', 'news_was_wrong']);
    expect(asked.slice(3)).toMatchObject([
      { what: `POST /v1/reviews/${ID}/own`, subject: 'approver-1', body: undefined },
      {
        what: `POST /v1/reviews/${ID}/close`,
        subject: 'operator-1',
        body: { reason_code: 'news_was_wrong' },
      },
    ]);
  });

  it.each([
    ['a proof without a statement', ['resolve', ID, '--if-version', '4', '--outcome', 'failed', '--reason', 'x', '--proof', 'y']],
    ['evidence that is no number', ['resolve', ID, '--if-version', '4', '--outcome', 'failed', '--reason', 'x', '--evidence', 'y']],
    ['no version', ['resolve', ID, '--outcome', 'failed', '--reason', 'x']],
    ['a proposal of another form', ['approve', ID, '../x']],
    ['a person whom the stack does not have', ['review', 'list', '--as', 'eve']],
    ['a person named like a member of every object', ['token', '--as', 'constructor']],
  ])('answer 2 to %s and ask nobody', async (_what, args) => {
    const { exitCode, err } = await local(args);
    expect(exitCode).toBe(2);
    expect(err).not.toBe('');
    expect(asked).toEqual([]);
  }); // prettier-ignore
});

describe('a token', () => {
  it('is printed alone, to be used in a header', async () => {
    const { exitCode, out } = await local(['token', '--as', 'operator-1']);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
  });

  it('is never signed in production mode, nor with a key that is not marked as development', async () => {
    const production = await local(['token', '--as', 'operator-1'], { PAYMENTS_MODE: 'production' });
    expect([production.exitCode, production.out]).toEqual([1, '']);
    writeStack({ environment: { PAYMENTS_MODE: 'production' } });
    expect((await local(['token', '--as', 'operator-1'])).exitCode).toBe(1);
    writeStack({}, { development: false });
    expect((await local(['token', '--as', 'operator-1'])).exitCode).toBe(2);
    writeStack({ issuer_key_file: join(folder, 'none.json') });
    expect((await local(['token', '--as', 'operator-1'])).exitCode).toBe(2);
  });

  it('of a person is never sent to another address', async () => {
    const { exitCode, err } = await local(['review', 'list', '--api-url', 'http://127.0.0.1:1']);
    expect(exitCode).toBe(2);
    expect(err).toContain('The API key is missing');
  });
});
