import { applyDecorators } from '@nestjs/common';
import { ApiBody, ApiExtension, ApiNoContentResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { ProblemCode } from '../../domain/domain-error.js';
import { REFUSALS_EXTENSION } from '../../http/documented.js';

/** How the route for providers is described in the OpenAPI document. */

export const Controller = (): ClassDecorator => ApiTags('webhooks') as ClassDecorator;

const REFUSALS: readonly ProblemCode[] = [
  'malformed_request',
  'malformed_url',
  'event_unreadable',
  'signature_invalid',
  'not_found',
  'request_timeout',
  'payload_too_large',
  'uri_too_long',
  'expectation_failed',
  'header_too_large',
  'internal',
  'storage_unavailable',
  'outcome_unknown',
  'overloaded',
  'shutting_down',
];

export const Receive = (): MethodDecorator =>
  applyDecorators(
    ApiOperation({
      summary: 'Receive an event of a provider',
      description: `For providers, not for clients. The body is verified as it came, by the provider's own
scheme, with either of the account's secrets; a signature older than 300 s or more than 60 s ahead is
refused as a forged one is. The event is stored before 204, and processed afterwards: it makes us ask the
provider, and the answer moves the payment. An event that comes again is 204 and changes nothing.`,
      security: [],
    }),
    ApiBody({ required: true, schema: { type: 'string', format: 'binary' }, description: 'At most 64 KiB.' }),
    ApiNoContentResponse({ description: 'The event is stored, now or before.' }),
    ApiExtension(REFUSALS_EXTENSION, REFUSALS),
  ) as MethodDecorator;
