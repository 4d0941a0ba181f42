import { randomBytes } from 'node:crypto';
import type { Answer } from './payout-answer.js';

/** Changes an answer on its way to the client. */
export type Disguise = (answer: Answer) => Disguised;

export interface Disguised {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function always(disguised: Disguised): Disguise {
  return () => disguised;
}

export const EMPTY: Answer = Object.freeze({ status: 200, body: '', replayed: false });

export const BAD_GATEWAY_HTML: Disguised = Object.freeze({
  status: 502,
  body: '<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>',
  headers: { 'content-type': 'text/html' },
});
/** JSON without `error`: some clients take every JSON without it for a success. */
export const BAD_GATEWAY_JSON: Disguised = plainJson(502, 'upstream connect error');
export const NOT_FOUND_JSON: Disguised = plainJson(404, 'no route matched');

function plainJson(status: number, message: string): Disguised {
  return Object.freeze({ status, body: JSON.stringify({ message }) });
}

export function brokenJson({ status, body }: Answer): Disguised {
  return { status, body: body.slice(0, Math.ceil(body.length / 2)) };
}

/** Overwrites members of the object, or of every object of a list. Errors stay as they are. */
export function changed(
  change: Readonly<Record<string, unknown>> | ((object: Record<string, unknown>) => Record<string, unknown>),
): Disguise {
  const altered = (object: Record<string, unknown>): Record<string, unknown> => ({
    ...object,
    ...(typeof change === 'function' ? change(object) : change),
  });
  return ({ status, body }) => {
    const content = parsed(body);
    if (isList(content))
      return { status, body: JSON.stringify({ ...content, data: content.data.map(altered) }) };
    return { status, body: 'object' in content ? JSON.stringify(altered(content)) : body };
  };
}

/** Another payment's object in the place of every one. */
export const anothersObject: Disguise = changed((object) => ({
  id: `${String(object['id']).replace(/_.*/s, '')}_${randomBytes(12).toString('hex')}`,
  ...('reference' in object && { reference: 'pay_of_somebody_else/1' }),
  ...('transfer_group' in object && { transfer_group: 'pay_of_somebody_else' }),
  ...('metadata' in object && { metadata: { payment_id: 'pay_of_somebody_else', generation: '1' } }),
  destination: 'acct_of_somebody_else',
}));

/** As providers do who quote the request in their errors: nothing of it may go further than evidence. */
export const echoedInError: Disguise = (answer) => {
  const code = firstObject(answer)?.['destination'] ?? 'unknown';
  const error = { type: 'api_error', code, message: `Could not finish ${answer.body}` };
  return { status: 500, body: JSON.stringify({ error }) };
};

/** What the object showed before its last change of status. */
export const staleStatus: Disguise = changed((object) => ({
  ...('status' in object && { status: STATUS_BEFORE[String(object['status'])] ?? object['status'] }),
  ...('failure_code' in object && { failure_code: null }),
  ...('returned' in object && { returned: null }),
}));

/** An inert object was never anything else. */
const STATUS_BEFORE: Readonly<Record<string, string>> = Object.freeze({
  succeeded: 'pending',
  failed: 'pending',
  cancelled: 'requires_commit',
  canceled: 'requires_confirmation',
});

/** Empties lists; an object that was read by its id stays. */
export const lostRows: Disguise = ({ status, body }) => {
  const content = parsed(body);
  return { status, body: isList(content) ? JSON.stringify({ ...content, data: [] }) : body };
};

/** Shows every object of a list a second time, under an id of its own. */
export const twoHits: Disguise = ({ status, body }) => {
  const content = parsed(body);
  if (!isList(content)) return { status, body };
  const data = content.data.flatMap((object) => [object, { ...object, id: `${String(object['id'])}2` }]);
  return { status, body: JSON.stringify({ ...content, data }) };
};

/** The first object of an answer, or of its list; null: there is none. */
export function firstObject(answer: Answer): Readonly<Record<string, unknown>> | null {
  const content = parsed(answer.body);
  return (isList(content) ? content.data[0] : content) ?? null;
}

interface List extends Record<string, unknown> {
  readonly data: Record<string, unknown>[];
}

function isList(content: Record<string, unknown>): content is List {
  return Array.isArray(content['data']);
}

function parsed(body: string): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}
