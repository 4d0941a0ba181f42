import fc from 'fast-check';

/** A request as raw parts: nothing of it has to be legal. */
export interface HostileRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'];

const segment = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('v1', 'payments', 'lanes', 'reviews', 'cancel', 'history', 'webhooks'),
  },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }).map(escaped) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', '.', '..', '%', '%2F', '%00', '%FF', '%C0%AF', ';', 'pay_', '*', ':id'),
  },
);

function escaped(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

const PAYMENT = `pay_${'a'.repeat(32)}`;
const route = fc.constantFrom(
  '/v1/payments',
  `/v1/payments/${PAYMENT}`,
  `/v1/payments/${PAYMENT}/cancel`,
  `/v1/payments/${PAYMENT}/reschedule`,
  `/v1/payments/${PAYMENT}/history`,
  `/v1/payments/${PAYMENT}/hold`,
  `/v1/payments/${PAYMENT}/resolutions`,
  '/v1/lanes',
  '/v1/lanes/simulated/pause',
  '/v1/reviews',
  `/v1/reviews/${PAYMENT}/close`,
  '/v1/webhooks/simulated',
);
const path = fc.oneof(
  { weight: 3, arbitrary: route },
  { weight: 1, arbitrary: fc.array(segment, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`) },
);
const query = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom('limit', 'cursor', 'state', 'currency', 'reference', 'created_at_from', '__proto__'),
        fc.string({ unit: 'binary', maxLength: 10 }).map(escaped),
      ),
      fc.oneof(
        fc.nat().map(String),
        fc.string({ unit: 'binary', maxLength: 60 }).map(escaped),
        fc.constant('%'),
      ),
    ),
    { maxLength: 4 },
  )
  .map((pairs) =>
    pairs.length === 0 ? '' : `?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`,
  );

/** What Node lets into a header: visible Latin-1 and spaces. */
const headerText = fc
  .string({ unit: fc.integer({ min: 0x20, max: 0xff }).filter((c) => c !== 0x7f).map((c) => String.fromCharCode(c)), maxLength: 300 }); // prettier-ignore

const headers = fc.record(
  {
    'idempotency-key': fc.oneof(headerText, fc.constantFrom('', '""', '"a', 'a'.repeat(256), 'ok-key')),
    'content-type': fc.oneof(
      { weight: 6, arbitrary: fc.constant('application/json') },
      {
        weight: 1,
        arbitrary: fc.oneof(headerText, fc.constantFrom('text/plain', 'application/json; charset=latin1')),
      },
    ),
    'content-encoding': fc.constantFrom('gzip', 'identity', 'br'),
    'if-match': fc.oneof(headerText, fc.constantFrom('*', '"v1"', 'W/"v1"', '"v0"', '"v99999999999"')),
    'if-none-match': fc.oneof(headerText, fc.constantFrom('*', '"v1"', 'W/"v1"')),
    'x-forwarded-for': headerText,
    'request-id': headerText,
    accept: headerText,
    cookie: headerText,
  },
  { requiredKeys: ['content-type'] },
);

const TIMES = [
  'now',
  '2026-02-30T00:00:00Z',
  '2090-01-01T24:00:00Z',
  'infinity',
  '9999-12-31T23:59:60Z',
  '2090-01-01',
];
const member = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.constantFrom<unknown>(
    1999,
    0,
    -1,
    1e21,
    0.1,
    999_999_999_999,
    'EUR',
    'XXX',
    'acct_1',
    ...TIMES,
    null,
    {},
    [],
  ),
);
const payment = fc.record(
  {
    amount: fc.oneof(fc.constant<unknown>(1_999), member),
    currency: fc.oneof(fc.constant<unknown>('EUR'), member),
    destination: fc.oneof(fc.constant<unknown>('acct_1'), member),
    execute_at: fc.oneof(fc.constant<unknown>('2090-01-01T00:00:00Z'), member),
    not_after: member,
    reference: member,
    description: member,
    metadata: fc.oneof(
      member,
      fc.dictionary(fc.string({ unit: 'binary', maxLength: 45 }), member, { maxKeys: 22 }),
    ),
    provider: member,
    state: member,
    reason: member,
    outcome: member,
    tenant_id: member,
  },
  { requiredKeys: ['amount', 'currency'] },
);
const json = fc.oneof(payment, fc.jsonValue()).map((value) => JSON.stringify(value));
/** Legal text, broken somewhere. */
const broken = fc
  .tuple(json, fc.nat(400), fc.constantFrom('', '"', '{', '\\', '\u0000', '\\ud800', ',', '\ufeff', '1e999'))
  .map(
    ([text, at, what]) =>
      text.slice(0, at % (text.length + 1)) + what + text.slice((at % (text.length + 1)) + 1),
  );
const body = fc.oneof(
  { weight: 6, arbitrary: json },
  { weight: 3, arbitrary: broken },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 300 }) },
  { weight: 1, arbitrary: fc.constantFrom('', '['.repeat(5_000), `"${'x'.repeat(20_000)}"`, '{"__proto__":1}', '9'.repeat(500)) }, // prettier-ignore
);

/** Anything that an HTTP client can be made to send. */
export const hostileRequest: fc.Arbitrary<HostileRequest> = fc
  .record({ method: fc.constantFrom(...METHODS, 'POST', 'POST', 'GET'), path, query, headers, body })
  .map(({ method, path: at, query: with_, headers: sent, body: text }) => ({
    method,
    path: (at + with_).slice(0, 5_000),
    headers: sent as Record<string, string>,
    body: method === 'GET' || method === 'HEAD' ? null : text,
  }));
