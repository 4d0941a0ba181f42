/**
 * What may stand in a log line. Everything else is dropped, so that a destination, a client's key,
 * a reference or a provider's text cannot reach a log by a careless call.
 */

const CODE = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/;
const ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

/** Field to the form its value must have, numbers as whole digits. */
const FORMS: Readonly<Record<string, RegExp>> = Object.freeze({
  request_id: ID,
  payment_id: /^pay_[a-z2-7]{32}$/,
  tenant_ref: ID,
  state: /^[a-z_]{1,32}$/,
  version: /^\d{1,10}$/,
  operation: /^[A-Za-z0-9_.:/* -]{1,128}$/,
  provider: CODE,
  code: CODE,
  duration_ms: /^\d{1,12}$/,
});

const EVENT = /^[a-z][a-z0-9_]{0,63}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** `method (file.ts:12:3)` of a stack, without its folder. A frame names our code, not its values. */
const FRAME = /^ {4}at (?:.*[(/\\])?([\w.-]{1,64}\.(?:ts|js|mjs|cjs)):(\d{1,6}):\d{1,6}\)?$/;
const MOST_FRAMES = 5;

/** Where an error was made: the last lines of its stack, which its message cannot reach. */
function placesOf(stack: unknown): readonly string[] {
  if (typeof stack !== 'string') return [];
  const lines = stack.split('\n');
  let first = lines.length;
  while (first > 0 && lines[first - 1]?.startsWith('    at ')) first--;
  const places = lines.slice(first).flatMap((line) => {
    const frame = FRAME.exec(line);
    return frame ? [`${frame[1]}:${frame[2]}`] : [];
  });
  return places.slice(0, MOST_FRAMES);
}

/** The words that our routes are made of; any other part of a path is the client's own. */
const ROUTE_WORDS = new Set(
  (
    'v1 payments history cancel reschedule hold release escalate resolutions approve reviews own close lanes pause resume ' +
    'webhooks webhook-endpoints enable disable rotate-secret deliveries resend openapi.json docs'
  ).split(' '),
);
const PAYMENT_ID = /pay_[a-z2-7]{32}/;

interface Line {
  [field: string]: unknown;
}

/** A request as `GET /v1/payments/*`: parts that are no word of a route are the client's. */
function operationOf(request: Line): string | undefined {
  if (typeof request['method'] !== 'string' || typeof request['url'] !== 'string') return undefined;
  const path = request['url'].split('?', 1)[0] ?? '';
  const parts = path.split('/', 8).map((part) => (part === '' || ROUTE_WORDS.has(part) ? part : '*'));
  return `${request['method']} ${parts.join('/')}`;
}

/** The fields that the HTTP logger and an error put in objects of their own, in our names. */
function flatten(line: Line): Line {
  const flat: Line = { ...line };
  const request = line['req'] as Line | undefined;
  if (typeof request === 'object' && request !== null) {
    flat['request_id'] ??= request['id'];
    flat['operation'] ??= operationOf(request);
    flat['payment_id'] ??= PAYMENT_ID.exec(String(request['url']))?.[0];
  }
  const response = line['res'] as Line | undefined;
  if (typeof response === 'object' && response !== null) flat['code'] ??= response['statusCode'];
  flat['duration_ms'] ??= line['responseTime'];
  const error = line['err'] as Line | undefined;
  if (typeof error === 'object' && error !== null) {
    flat['code'] ??= typeof error['code'] === 'string' ? error['code'] : error['type'];
  }
  return flat;
}

/**
 * Takes one line of JSON and gives it back with the allowed fields only, in a fixed order. A line
 * that is not JSON becomes an event that says so. Ends in a line feed, like its input.
 */
export function keepAllowed(text: string): string {
  let line: Line;
  try {
    line = JSON.parse(text) as Line;
  } catch {
    return `{"level":"error","event":"log_line_unreadable"}\n`;
  }
  const kept: Line = {};
  if (typeof line['time'] === 'string' && TIME.test(line['time'])) kept['time'] = line['time'];
  kept['level'] = line['level'];
  kept['name'] = line['name'];
  const event = line['event'];
  kept['event'] = typeof event === 'string' && EVENT.test(event) ? event : 'unclassified';
  const flat = flatten(line);
  for (const [field, form] of Object.entries(FORMS)) {
    const raw = flat[field];
    const value = typeof raw === 'number' ? Math.round(raw) : raw;
    if ((typeof value === 'number' || typeof value === 'string') && form.test(String(value))) {
      kept[field] = value;
    }
  }
  const places = placesOf((line['err'] as Line | undefined)?.['stack']);
  if (places.length > 0) kept['at'] = places;
  return `${JSON.stringify(kept)}\n`;
}
