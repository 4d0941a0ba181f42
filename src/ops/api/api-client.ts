import { z } from 'zod';
import { CommandFailure } from '../terminal.js';
import type { ApiTarget } from './api-target.js';

/** The outermost limit of a call (ms): above the server's own. */
const CALL_MS = 30_000;
/** How often a read is repeated when nobody answers; a change is never repeated by itself. */
const READ_TRIES = 2;

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Begins with a slash; parts from the caller must be encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

export interface ApiAnswer<T> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

const Problem = z.looseObject({
  code: z.string(),
  detail: z.string(),
  request_id: z.string().optional(),
  state: z.string().optional(),
  version: z.number().optional(),
  errors: z.array(z.looseObject({ pointer: z.string(), code: z.string() })).optional(),
});
type Problem = z.infer<typeof Problem>;

/** A problem as a sentence: its code, what happened and what to do, and what of the request is wrong. */
export function problemSentence(problem: Problem): string {
  const parts = [`${problem.code}: ${problem.detail}`];
  if (problem.errors?.length) {
    parts.push(`Wrong: ${problem.errors.map((e) => `${e.pointer || '/'} (${e.code})`).join(', ')}.`);
  }
  if (problem.state !== undefined) parts.push(`The payment is ${problem.state}, version ${problem.version}.`);
  if (problem.request_id !== undefined) parts.push(`Request ${problem.request_id}.`);
  return parts.join(' ');
}

function urlOf(target: ApiTarget, call: ApiCall): URL {
  const base = target.url.endsWith('/') ? target.url.slice(0, -1) : target.url;
  const url = new URL(`${base}${call.path}`);
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return url;
}

async function send(target: ApiTarget, call: ApiCall): Promise<Response> {
  return fetch(urlOf(target, call), {
    method: call.method,
    redirect: 'error',
    signal: AbortSignal.timeout(CALL_MS),
    headers: {
      authorization: `Bearer ${target.key}`,
      accept: 'application/json, application/problem+json',
      ...(call.body ? { 'content-type': 'application/json' } : {}),
      ...call.headers,
    },
    ...(call.body ? { body: JSON.stringify(call.body) } : {}),
  });
}

/** A change whose answer was lost may have happened: only its own rules say whether to repeat it. */
function notAnswered(target: ApiTarget, call: ApiCall, error: unknown): CommandFailure {
  const cause = (error as { cause?: { code?: unknown } }).cause?.code;
  const why = typeof cause === 'string' ? ` (${cause})` : '';
  const sent = call.method === 'GET' || cause === 'ECONNREFUSED' || cause === 'ENOTFOUND';
  const advice = sent
    ? 'Nothing was changed.'
    : 'The change may have been made: repeat the same command, which changes nothing twice.';
  return new CommandFailure(2, `${new URL(target.url).origin} did not answer${why}. ${advice}`);
}

/**
 * Calls the API with the caller's own key.
 * @returns the body of a 2xx answer, as the API documents it.
 * @throws CommandFailure: 1 with the problem's sentence when it was refused, 2 when nobody answered
 * within 30 s or the answer is not one of the payments API.
 */
export async function callApi<T>(target: ApiTarget, call: ApiCall): Promise<ApiAnswer<T>> {
  const tries = call.method === 'GET' ? READ_TRIES : 1;
  for (let tried = 1; ; tried++) {
    let response: Response;
    let text: string;
    try {
      response = await send(target, call);
      text = await response.text();
    } catch (error) {
      if (tried < tries) continue;
      throw notAnswered(target, call, error);
    }
    return readAnswer<T>(target, response, text);
  }
}

function readAnswer<T>(target: ApiTarget, response: Response, text: string): ApiAnswer<T> {
  // Nothing to say: whoever calls a route that answers so names no type.
  if (response.status === 204) {
    return { status: 204, body: undefined as T, headers: response.headers };
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (response.ok && typeof body === 'object' && body !== null) {
    return { status: response.status, body: body as T, headers: response.headers };
  }
  const problem = Problem.safeParse(body);
  if (response.ok || !problem.success) {
    const origin = new URL(target.url).origin;
    throw new CommandFailure(
      2,
      `${origin} answered ${response.status} in a form that the payments API never has.`,
    );
  }
  throw new CommandFailure(1, problemSentence(problem.data), problem.data);
}
