import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { payments, type Ran } from '../../support/command-line.js';

const ID = `pay_${'a2'.repeat(16)}`;
const PAYMENT = {
  id: ID,
  state: 'scheduled',
  version: 3,
  amount: 1999,
  currency: 'EUR',
  destination: 'acct_1',
  provider: 'simulated',
  reference: null,
  description: null,
  metadata: { team: 'north' },
  execute_at: '2026-12-24T09:00:00.000000Z',
  not_after: '2026-12-24T18:00:00.000000Z',
  submission_started_at: null,
  first_call_at: null,
  lateness_ms: null,
  provider_ref: null,
  next_action_at: null,
  created_at: '2026-12-01T08:30:00.000000Z',
  updated_at: '2026-12-01T08:30:00.000000Z',
};
const PROBLEM = {
  type: 'urn:problem:submission_started',
  title: 'Submission started',
  status: 409,
  detail: 'The payment may already be at the provider.',
  code: 'submission_started',
  request_id: 'req-1',
  retryable: false,
  state: 'submitting',
  version: 2,
};

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** An API of the test's own: answers what it is told to, and remembers what it was asked. */
let server: Server;
let url: string;
let seen: Seen[];
let reply: { status: number; body: unknown; headers?: Record<string, string> } | 'hang up';
beforeEach(async () => {
  seen = [];
  reply = { status: 200, body: PAYMENT };
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    request.on('end', () => {
      seen.push({
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: text === '' ? undefined : JSON.parse(text),
      });
      if (reply === 'hang up') return request.socket.destroy();
      response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
      response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

const ask = (...args: string[]): Promise<Ran> =>
  payments(args, { PAYMENTS_API_URL: url, PAYMENTS_API_KEY: 'key-of-env' });
const create = (...more: string[]): Promise<Ran> =>
  ask(
    ...['create', '--amount', '1999', '--currency', 'EUR', '--destination', 'acct_1'],
    ...['--idempotency-key', 'invoice-1', ...more],
  );

describe('a command on payments', () => {
  it('sends the key of the environment, or of a file, and the file of an option goes before it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'payments-key-'));
    const file = join(folder, 'key');
    writeFileSync(file, 'key-of-file\n');
    await ask('get', ID);
    await ask('get', ID, '--api-key-file', file);
    await payments(['get', ID], { PAYMENTS_API_URL: url, PAYMENTS_API_KEY_FILE: file });
    rmSync(folder, { recursive: true });
    expect(seen.map((s) => s.headers.authorization)).toEqual([
      'Bearer key-of-env',
      'Bearer key-of-file',
      'Bearer key-of-file',
    ]);
    const { exitCode, err } = await ask('get', ID, '--api-key-file', file);
    expect([exitCode, err]).toEqual([2, expect.stringContaining('cannot be read')]);
  });

  it('takes no key as an argument: everybody on the host can read those', async () => {
    expect((await ask('get', ID, '--api-key', 'k')).exitCode).toBe(2);
    expect(seen).toEqual([]);
  });

  it('shows a payment as a table with its amount in major units', async () => {
    const { exitCode, out } = await ask('get', ID);
    expect(exitCode).toBe(0);
    expect(out).toContain('19.99 EUR');
    expect(out).toContain('team=north');
    expect(out).not.toContain('null');
  });

  it('prints the answer of the API unchanged with --json', async () => {
    const ran = await ask('get', ID, '--json');
    expect(ran.json()).toEqual(PAYMENT);
  });

  it.each([
    ['cancel', `/v1/payments/${ID}/cancel`],
    ['hold', `/v1/payments/${ID}/hold`],
    ['release', `/v1/payments/${ID}/release`],
  ])('%s posts to its route, with the version that the caller saw', async (command, path) => {
    expect((await ask(command, ID)).exitCode).toBe(0);
    expect((await ask(command, ID, '--if-version', '3')).exitCode).toBe(0);
    expect(seen.map((s) => [s.method, s.url, s.headers['if-match'], s.body])).toEqual([
      ['POST', path, undefined, undefined],
      ['POST', path, '"v3"', undefined],
    ]);
  });

  it('shows a refusal as one sentence with its code and answers 1', async () => {
    reply = { status: 409, body: PROBLEM };
    const { exitCode, out, err } = await ask('cancel', ID);
    expect(exitCode).toBe(1);
    expect(out).toBe('');
    expect(err).toBe(
      'submission_started: The payment may already be at the provider. ' +
        'The payment is submitting, version 2. Request req-1.\n',
    );
  });

  it('prints the problem as JSON with --json', async () => {
    reply = { status: 409, body: PROBLEM };
    const ran = await ask('cancel', ID, '--json');
    expect(ran.exitCode).toBe(1);
    expect(ran.json()).toMatchObject({ code: 'submission_started', state: 'submitting' });
    expect(ran.err).toBe('');
  });

  it('names the members that are wrong', async () => {
    const errors = [{ pointer: '/currency', code: 'malformed' }];
    reply = { status: 400, body: { code: 'validation_failed', detail: 'Members are wrong.', errors } };
    expect((await create('--in', '1h')).err).toContain('Wrong: /currency (malformed).');
  });

  it.each([
    ['HTML of a proxy', { status: 502, body: '<html>' }],
    ['a page that says 200', { status: 200, body: '<html>' }],
    ['JSON of something else', { status: 404, body: { error: 'x' } }],
  ])('answers 2 to %s: that is no payments API', async (_what, answer) => {
    reply = answer;
    const { exitCode, err } = await ask('get', ID);
    expect(exitCode).toBe(2);
    expect(err).toContain('in a form that the payments API never has');
  });

  it('answers 2 when nobody listens, and says that nothing was changed', async () => {
    const gone = `http://127.0.0.1:1`;
    const { exitCode, err } = await payments(['cancel', ID, '--api-url', gone], { PAYMENTS_API_KEY: 'k' });
    expect(exitCode).toBe(2);
    expect(err).toContain('did not answer');
  });

  it('says that a change may have been made when its answer was lost, and does not repeat it', async () => {
    reply = 'hang up';
    const { exitCode, err } = await ask('cancel', ID);
    expect(exitCode).toBe(2);
    expect(err).toContain('may have been made');
    expect(seen).toHaveLength(1);
  });

  it('repeats a read once', async () => {
    reply = 'hang up';
    expect((await ask('get', ID)).err).toContain('Nothing was changed');
    expect(seen).toHaveLength(2);
  });
});

describe('create', () => {
  it('sends what was given and nothing else', async () => {
    reply = { status: 201, body: PAYMENT };
    const ran = await create(
      '--execute-at',
      '2026-12-24T09:00:00Z',
      '--metadata',
      'a=1',
      '--metadata',
      'b=x=y',
    );
    expect(ran.exitCode).toBe(0);
    expect(ran.out).toMatch(/^Scheduled\./);
    expect(seen[0]?.headers['idempotency-key']).toBe('invoice-1');
    expect(seen[0]?.body).toEqual({
      amount: 1999,
      currency: 'EUR',
      destination: 'acct_1',
      execute_at: '2026-12-24T09:00:00Z',
      metadata: { a: '1', b: 'x=y' },
    });
  });

  it('refuses without an idempotency key and says why there must be one', async () => {
    const args = ['create', '--amount', '1', '--currency', 'EUR', '--destination', 'a', '--in', '1h'];
    const { exitCode, err } = await ask(...args);
    expect(exitCode).toBe(2);
    expect(err).toContain('can never pay twice');
    expect(seen).toEqual([]);
  });

  it.each(['', 'two words', 'é', 'a\nb', 'x'.repeat(256)])('refuses the idempotency key %j', async (key) => {
    const { exitCode } = await create('--in', '1h', '--idempotency-key', key);
    expect(exitCode).toBe(2);
    expect(seen).toEqual([]);
  });

  it('says that a replay scheduled nothing', async () => {
    reply = { status: 200, body: PAYMENT, headers: { 'idempotency-replayed': 'true' } };
    expect((await create('--in', '1h')).out).toMatch(/nothing new was scheduled/);
  });

  it.each([
    ['neither --execute-at nor --in', []],
    ['both', ['--in', '1h', '--execute-at', 'now']],
  ])('refuses %s', async (_what, args) => {
    expect((await create(...args)).exitCode).toBe(2);
    expect(seen).toEqual([]);
  });

  it.each(['10', '1w', '-1s', '1.5h', '', 'now'])('refuses the duration %j', async (duration) => {
    expect((await create('--in', duration)).exitCode).toBe(2);
    expect(seen).toEqual([]);
  });

  it('counts --in from this clock, and sends the word now for none', async () => {
    const before = Date.now();
    await create('--in', '10s');
    const after = Date.now();
    await create('--in', '0s');
    const [first, second] = seen.map((s) => (s.body as { execute_at: string }).execute_at);
    expect(Date.parse(first ?? '')).toBeGreaterThanOrEqual(before + 10_000);
    expect(Date.parse(first ?? '')).toBeLessThanOrEqual(after + 10_000);
    expect(second).toBe('now');
  });

  it('tells how to repeat a lost --in, since another time is another request', async () => {
    reply = 'hang up';
    const { err } = await create('--in', '10s');
    const sent = (seen.at(0)?.body as { execute_at?: string } | undefined)?.execute_at;
    expect(err).toContain(`--execute-at ${sent} instead of --in`);
  });
});

describe('list and history', () => {
  it('list sends its filters and shows where the next page begins', async () => {
    reply = { status: 200, body: { data: [PAYMENT], next_cursor: 'abc' } };
    const { out } = await ask(
      'list',
      '--state',
      'unknown',
      '--limit',
      '5',
      '--created-at-from',
      '2026-01-01T00:00:00Z',
    );
    expect(seen[0]?.url).toBe('/v1/payments?limit=5&state=unknown&created_at_from=2026-01-01T00%3A00%3A00Z');
    expect(out).toContain(ID);
    expect(out).toContain('--cursor abc');
  });

  it('list says when there is nothing', async () => {
    reply = { status: 200, body: { data: [], next_cursor: null } };
    expect((await ask('list')).out).toBe('No payments.\n');
  });

  it('history shows transitions, attempts and evidence in order', async () => {
    const data = [
      {
        kind: 'transition',
        at: 't1',
        seq: 1,
        from: null,
        to: 'scheduled',
        cause: 'create',
        actor: 'api_key:x',
      },
      {
        kind: 'attempt',
        at: 't2',
        generation: 1,
        attempt: 1,
        phase: 'submit',
        closed_at: 't3',
        evidence: 'ambiguous',
        code: 'reset',
      },
      {
        kind: 'attempt',
        at: 't4',
        generation: 1,
        attempt: 2,
        phase: 'submit',
        closed_at: null,
        evidence: null,
      },
      {
        kind: 'evidence',
        at: 't5',
        source: 'lookup',
        evidence: 'found',
        status: 'succeeded',
        observed_amount: '1999',
        observed_currency: 'EUR',
      },
    ];
    reply = { status: 200, body: { payment_id: ID, data, has_more: true } };
    const { out } = await ask('history', ID);
    expect(out).toContain('(none) → scheduled by create');
    expect(out).toContain('submit 1/1: ambiguous reset');
    expect(out).toContain('submit 1/2: open');
    expect(out).toContain('found succeeded 1999 EUR');
    expect(out).toContain('There is more');
  });
});

/** The key, or the subject of the token. */
function callerOf(authorization: string): string {
  const text = authorization.replace('Bearer ', '');
  const claims = text.split('.')[1];
  if (claims === undefined) return text;
  return (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sub: string }).sub;
}

describe('the local stack', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'payments-test-stack-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function stack(state: string): void {
    const { privateKey } = generateKeyPairSync('ed25519');
    const keyFile = join(folder, 'issuer-key.json');
    const issuer = { development: true, issuer: 'http://i', audience: 'payments', kid: 'k' };
    writeFileSync(keyFile, JSON.stringify({ ...issuer, private_key: privateKey.export({ format: 'jwk' }) }));
    writeFileSync(
      join(folder, 'stack.json'),
      JSON.stringify({
        ...{ state, api_url: url, environment: {}, issuer_key_file: keyFile },
        api_keys: { client: 'key-of-client' },
        people: { 'operator-1': { subject: 'operator-1', tenant: 'local', roles: ['operator'] } },
      }),
    );
  }
  const local = (...args: string[]): Promise<Ran> => payments(args, { PAYMENTS_LOCAL_DIR: folder });

  it('is asked when nothing else is named: with its key, and as its operator where a key may not', async () => {
    stack('running');
    for (const command of ['get', 'cancel', 'hold', 'release', 'escalate']) await local(command, ID);
    await local('lanes');
    expect(seen.map((s) => callerOf(s.headers.authorization ?? ''))).toEqual([
      ...['key-of-client', 'key-of-client'],
      ...['operator-1', 'operator-1', 'operator-1', 'operator-1'],
    ]);
  });

  it('never lends its keys to another address', async () => {
    stack('running');
    const { exitCode, err } = await local('get', ID, '--api-url', 'http://127.0.0.1:1');
    expect(exitCode).toBe(2);
    expect(err).toContain('The API key is missing');
  });

  it('is not asked when it is stopped', async () => {
    stack('stopped');
    const { exitCode, err } = await local('get', ID);
    expect(exitCode).toBe(2);
    expect(err).toContain('npm start');
    expect(seen).toEqual([]);
  });

  it('missing, together with any other address, is said in a sentence', async () => {
    const { exitCode, err } = await payments(['get', ID]);
    expect(exitCode).toBe(2);
    expect(err).toContain('There is no API to ask');
  });
});
