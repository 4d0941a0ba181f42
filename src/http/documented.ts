import { applyDecorators } from '@nestjs/common';
import { ApiBearerAuth, ApiExtension, ApiOperation } from '@nestjs/swagger';
import type { ProblemCode } from '../domain/domain-error.js';

/** Where an operation keeps its refusals until the document is written (an OpenAPI extension). */
export const REFUSALS_EXTENSION = 'x-refusals';

/** What every route with a credential can answer, whatever it does. */
const ALWAYS: readonly ProblemCode[] = [
  'malformed_request',
  'malformed_url',
  'unauthenticated',
  'forbidden',
  'request_timeout',
  'uri_too_long',
  'expectation_failed',
  'header_too_large',
  'rate_limited',
  'internal',
  'storage_unavailable',
  'issuer_unavailable',
  'overloaded',
  'shutting_down',
];
/** What every route can answer that reads a body, if only to find it empty. */
const WITH_BODY: readonly ProblemCode[] = [
  'body_not_utf8',
  'body_byte_order_mark',
  'body_syntax',
  'body_too_deep',
  'body_duplicate_member',
  'body_forbidden_member',
  'body_forbidden_text',
  'validation_failed',
  'payload_too_large',
  'unsupported_media_type',
];

export interface OperationDoc {
  readonly summary: string;
  readonly description: string;
  readonly readsBody: boolean;
  /** Refusals beyond those that every such route has. */
  readonly refusals: readonly ProblemCode[];
}

/** Documents one operation: what it does and every code it can refuse with. */
export function Operation(doc: OperationDoc): MethodDecorator {
  const refusals = [...ALWAYS, ...(doc.readsBody ? WITH_BODY : []), ...doc.refusals];
  return applyDecorators(
    ApiBearerAuth(),
    ApiOperation({ summary: doc.summary, description: doc.description }),
    ApiExtension(REFUSALS_EXTENSION, refusals),
  ) as MethodDecorator;
}
