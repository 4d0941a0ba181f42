import { applyDecorators } from '@nestjs/common';
import {
  ApiAcceptedResponse,
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiTags,
} from '@nestjs/swagger';
import { Operation } from '../../http/documented.js';
import { WebhookDeliveryList } from './schemas/webhook-delivery.schema.js';
import {
  WebhookEndpoint,
  WebhookEndpointList,
  WebhookEndpointWithSecret,
} from './schemas/webhook-endpoint.schema.js';

/** How the routes of endpoints are described in the OpenAPI document. */

export const Controller = (): ClassDecorator => ApiTags('webhook endpoints') as ClassDecorator;

const theEndpoint = ApiOkResponse({
  description: 'The endpoint as it is now.',
  standardSchema: WebhookEndpoint,
});

export const Create = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Add an endpoint for events',
      description: `Every transition of the tenant's payments is told to its active endpoints, up to ten of them:
a POST with the headers of Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature), signed
with the secret that this answer shows once. An event names the payment, its version and its new state
and nothing of its money; read the payment for more. Each event comes at least once, under the same id;
those of one payment in the order of its versions. Answer 2xx within 10 s. Anything else is tried again,
ten times over 75 hours; 410 disables the endpoint.

A repeat makes a second endpoint: after a lost answer, list them first.`,
      readsBody: true,
      refusals: ['body_missing', 'endpoint_url_not_allowed', 'too_many_endpoints', 'outcome_unknown'],
    }),
    ApiCreatedResponse({
      description: 'It is active. The secret is not shown again.',
      standardSchema: WebhookEndpointWithSecret,
      headers: { Location: { description: 'Where the endpoint is read.', schema: { type: 'string' } } },
    }),
  ) as MethodDecorator;

export const List = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'List the endpoints for events',
      description: 'Oldest first, at most ten. Secrets are not shown.',
      readsBody: false,
      refusals: [],
    }),
    ApiOkResponse({ description: 'All of them.', standardSchema: WebhookEndpointList }),
  ) as MethodDecorator;

export const Read = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Read an endpoint for events',
      description: 'Whether it is active, and since when nothing arrives. Its secret is not shown.',
      readsBody: false,
      refusals: ['not_found'],
    }),
    theEndpoint,
  ) as MethodDecorator;

export const Enable = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Enable an endpoint',
      description: `Events go there again, what waited for it first. What happened while it was disabled is sent
after a call of resend. A repeat changes nothing.`,
      readsBody: true,
      refusals: ['not_found', 'outcome_unknown'],
    }),
    theEndpoint,
  ) as MethodDecorator;

export const Disable = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Disable an endpoint',
      description: `Nothing is sent there until it is enabled; a delivery under way ends as it will. A repeat
changes nothing.`,
      readsBody: true,
      refusals: ['not_found', 'outcome_unknown'],
    }),
    theEndpoint,
  ) as MethodDecorator;

export const Rotate = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Replace the signing secret of an endpoint',
      description: `Until the secret before ends, events carry two signatures, so that receivers with either one
verify. While one is ending already, a further call replaces the newest and leaves that one: it is safe to
repeat a call whose answer was lost. After a leak give 0 seconds.`,
      readsBody: true,
      refusals: ['not_found', 'outcome_unknown'],
    }),
    ApiOkResponse({
      description: 'The endpoint and its new secret, which is not shown again.',
      standardSchema: WebhookEndpointWithSecret,
    }),
  ) as MethodDecorator;

export const Remove = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Delete an endpoint',
      description: 'Nothing is sent there any more. Its secrets, its log and what waited for it are gone.',
      readsBody: false,
      refusals: ['not_found', 'outcome_unknown'],
    }),
    ApiNoContentResponse({ description: 'It is gone.' }),
  ) as MethodDecorator;

export const Deliveries = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Read what was delivered to an endpoint',
      description: `Newest first, kept for a month: codes and times of each event's last try. What the receiver
answered is not kept.`,
      readsBody: false,
      refusals: ['validation_failed', 'cursor_invalid', 'not_found'],
    }),
    ApiOkResponse({ description: 'One page.', standardSchema: WebhookDeliveryList }),
  ) as MethodDecorator;

export const Replay = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Send again what did not arrive',
      description: `Queues every event since then that did not arrive: given up, waiting, or never queued because
the endpoint was disabled or not there yet. Those that arrived are left. The queue is filled in the
background; replaying_from tells how far it has come.`,
      readsBody: true,
      refusals: ['body_missing', 'not_found', 'replay_too_old', 'outcome_unknown'],
    }),
    ApiAcceptedResponse({ description: 'It is being queued.', standardSchema: WebhookEndpoint }),
  ) as MethodDecorator;

export const Resend = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Send one event again',
      description:
        'Whether it arrived or not, under its own id. A repeat before it was sent changes nothing.',
      readsBody: true,
      refusals: ['not_found', 'outcome_unknown'],
    }),
    ApiNoContentResponse({ description: 'It is queued.' }),
  ) as MethodDecorator;
