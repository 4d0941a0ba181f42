import { HttpException } from '@nestjs/common';
import { DomainError, type ProblemCode } from '../domain/domain-error.js';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../persistence/database-errors.js';

/** What has to be known of the request to say what an error means for it. */
export interface RequestFacts {
  readonly method: string;
  /** True once the handler was entered: from then on something may have been changed. */
  readonly hasBegun: boolean;
  /** True when the whole body has arrived. */
  readonly isComplete: boolean;
  /** True when no route was found. */
  readonly isUnrouted: boolean;
  /** Methods that the path has, empty when the path has no route at all. */
  readonly allowedMethods: readonly string[];
}

/** Errors of the frameworks that have one meaning whatever the request. */
const BY_FRAMEWORK_CODE: Readonly<Record<string, ProblemCode>> = Object.freeze({
  FST_ERR_BAD_URL: 'malformed_url',
  FST_ERR_MAX_PARAM_LENGTH: 'uri_too_long',
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
});

/** The rest, by the status the framework gave: never by its message, which may echo input. */
const BY_STATUS: Readonly<Record<number, ProblemCode>> = Object.freeze({
  400: 'malformed_request',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  413: 'payload_too_large',
  414: 'uri_too_long',
  415: 'unsupported_media_type',
  417: 'expectation_failed',
  429: 'rate_limited',
  431: 'header_too_large',
  503: 'overloaded',
});

/** SQLSTATE classes that mean a value Postgres cannot hold: 22xxx and 54000 (index row too large). */
const VALUE_STATES = /^(22[0-9A-Z]{3}|54000)$/;

/**
 * The one table from everything that can be thrown while a request is served to the catalogue.
 * @returns a DomainError; `internal`, with the fault as its cause, for whatever is not understood.
 */
export function translateError(thrown: unknown, request: RequestFacts): DomainError {
  if (thrown instanceof DomainError) return thrown;
  if (thrown instanceof StorageUnavailable || thrown instanceof LockTimeout) {
    return new DomainError('storage_unavailable', { cause: thrown });
  }
  if (thrown instanceof OutcomeUnknown) return new DomainError('outcome_unknown', { cause: thrown });
  const code = codeOf(thrown);
  if (code !== null && VALUE_STATES.test(code))
    return new DomainError('value_out_of_range', { cause: thrown });
  if (code === 'FST_ERR_HANDLER_TIMEOUT') return outOfTime(request, thrown);
  const known = code === null ? undefined : BY_FRAMEWORK_CODE[code];
  if (known !== undefined) return new DomainError(known);
  return fromStatus(statusOf(thrown), request, thrown);
}

/** Fastify counts the reading of the body too, and a handler goes on after its time is over. */
function outOfTime({ hasBegun, isComplete, method }: RequestFacts, cause: unknown): DomainError {
  if (!hasBegun && !isComplete) return new DomainError('request_timeout');
  const isRead = method === 'GET' || method === 'HEAD';
  return new DomainError(hasBegun && !isRead ? 'outcome_unknown' : 'overloaded', { cause });
}

function fromStatus(status: number | null, request: RequestFacts, thrown: unknown): DomainError {
  if (status === 404 && request.isUnrouted) {
    const hasOther = request.allowedMethods.length > 0 && !request.allowedMethods.includes(request.method);
    return new DomainError(hasOther ? 'method_not_allowed' : 'route_not_found');
  }
  const code = status === null ? undefined : BY_STATUS[status];
  return code === undefined ? new DomainError('internal', { cause: thrown }) : new DomainError(code);
}

/** The status of an error that a framework threw on purpose; null for anything else. */
function statusOf(thrown: unknown): number | null {
  if (thrown instanceof HttpException) return thrown.getStatus();
  const code = codeOf(thrown);
  const status = (thrown as { statusCode?: unknown } | null)?.statusCode;
  // Fastify gives 400 to a body that broke off, whatever error the socket had.
  const isFramework = code !== null && (code.startsWith('FST_') || code === 'ECONNRESET');
  return isFramework && typeof status === 'number' ? status : null;
}

function codeOf(thrown: unknown): string | null {
  const direct = (thrown as { code?: unknown } | null | undefined)?.code;
  if (typeof direct === 'string') return direct;
  // TypeORM wraps the driver's error.
  const driver = (thrown as { driverError?: { code?: unknown } } | null | undefined)?.driverError?.code;
  return typeof driver === 'string' ? driver : null;
}
