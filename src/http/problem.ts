import { PROBLEMS, type DomainError, type FieldError, type ProblemCode } from '../domain/domain-error.js';

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

/** The body of every refusal and error: RFC 9457 with the members of our API. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: ProblemCode;
  readonly request_id: string;
  readonly retryable: boolean;
  readonly state?: string;
  readonly version?: number;
  readonly errors?: readonly FieldError[];
  readonly [extra: string]: unknown;
}

/** What goes out: `body` is JSON text, `headers` come on top of those of every answer. */
export interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Whole seconds a client is asked to wait when the refusal itself names no time. */
const DEFAULT_RETRY_AFTER_S: Partial<Record<ProblemCode, number>> = Object.freeze({
  idempotency_key_in_use: 1,
  rate_limited: 1,
  storage_unavailable: 2,
  issuer_unavailable: 5,
  outcome_unknown: 1,
  overloaded: 2,
  shutting_down: 1,
  recovery_hold: 60,
});

/**
 * Builds the answer for one refusal. Title and detail come from the catalogue alone, so nothing
 * the client sent can come back in them.
 * @param random a number in [0, 1) for the jitter of Retry-After: clients refused together must
 * not come back together.
 */
export function problemAnswer(error: DomainError, requestId: string, random: () => number): ProblemAnswer {
  const { status, title, detail, retryable } = PROBLEMS[error.code];
  const problem: Problem = {
    type: `urn:problem:${error.code}`,
    title,
    status,
    detail,
    instance: `urn:request:${requestId}`,
    code: error.code,
    request_id: requestId,
    retryable,
    ...error.extra,
    state: error.state,
    version: error.version,
    errors: error.errors,
  };
  const headers: Record<string, string> = { 'Content-Type': PROBLEM_CONTENT_TYPE };
  const waitS = retryAfterS(error, random);
  if (waitS !== null) headers['Retry-After'] = String(waitS);
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer';
  return { status, headers, body: JSON.stringify(problem) };
}

/** The time asked for, and up to half of it (at least one second) on top. Null: none is due. */
function retryAfterS(error: DomainError, random: () => number): number | null {
  const base = error.retryAfterS ?? DEFAULT_RETRY_AFTER_S[error.code];
  if (base === undefined) return null;
  const whole = Math.max(1, Math.ceil(base));
  return whole + Math.floor(random() * (Math.ceil(whole / 2) + 1));
}
