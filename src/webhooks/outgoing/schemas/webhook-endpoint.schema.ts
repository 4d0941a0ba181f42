import { z } from 'zod';
import { EVENT_TYPES } from '../event.js';
import { LONGEST_URL } from '../endpoint-guard.js';

const shownInstant = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/)
  .meta({ examples: ['2026-12-24T09:00:00.000000Z'] });

/** The `id` of a path. A text of another form is answered like an endpoint that does not exist. */
export const EndpointIdParam = z
  .string()
  .regex(/^whe_[0-9a-f]{32}$/)
  .meta({ examples: ['whe_019b1f0a00007000800000000000abcd'] });

const url = z
  .string()
  .min(1)
  .max(LONGEST_URL)
  .meta({
    description: `https, a public host name (no IP address), port 443 unless the service lists others, no user
name, no fragment. Where its name resolves to a private address, nothing is sent.`,
    examples: ['https://hooks.example.com/payments'],
  });

const description = z
  .string()
  .min(1)
  .max(140)
  // No control characters; as ranges, because few who read the document know classes of Unicode.
  .regex(/^[ -~\u00a0-\uffff]*$/)
  .meta({ description: 'For people: one line, and nothing that is secret.' });

const eventTypes = z
  .array(z.enum(EVENT_TYPES as [string, ...string[]]))
  .min(1)
  .max(EVENT_TYPES.length)
  .meta({
    description: 'The types to be told; left out: all, also later ones.',
    examples: [['payment.succeeded', 'payment.failed', 'payment.returned']],
  });

export const CreateWebhookEndpoint = z
  .strictObject({ url, event_types: eventTypes.optional(), description: description.optional() })
  .meta({ id: 'CreateWebhookEndpoint', examples: [{ url: 'https://hooks.example.com/payments' }] });
export type CreateWebhookEndpointCommand = z.infer<typeof CreateWebhookEndpoint>;

const endpoint = {
  id: EndpointIdParam,
  url: z.string(),
  description: z.string().nullable(),
  event_types: z.array(z.string()).nullable().meta({ description: 'Null: all.' }),
  status: z.enum(['active', 'disabled']),
  status_reason: z.enum(['by_request', 'gone', 'failing']).nullable().meta({
    description: 'Why it is disabled: you asked, it answered 410, or nothing arrived for five days.',
  }),
  status_changed_at: shownInstant,
  failing_since: shownInstant
    .nullable()
    .meta({ description: 'The first failure since the last event that arrived.' }),
  previous_secret_until: shownInstant
    .nullable()
    .meta({ description: 'Until then events are also signed with the secret before this one.' }),
  replaying_from: shownInstant
    .nullable()
    .meta({ description: 'How far a replay has come; null when none runs.' }),
  created_at: shownInstant,
};
const EXAMPLE = {
  id: 'whe_019b1f0a00007000800000000000abcd',
  url: 'https://hooks.example.com/payments',
  description: null,
  event_types: null,
  status: 'active',
  status_reason: null,
  status_changed_at: '2026-12-24T09:00:00.000000Z',
  failing_since: null,
  previous_secret_until: null,
  replaying_from: null,
  created_at: '2026-12-24T09:00:00.000000Z',
} as const;

/** Where a tenant wants to hear of its payments. */
export const WebhookEndpoint = z.strictObject(endpoint).meta({ id: 'WebhookEndpoint', examples: [EXAMPLE] });
export type WebhookEndpointView = z.infer<typeof WebhookEndpoint>;

/** The same with its signing secret: shown by the call that made it, and never again. */
export const WebhookEndpointWithSecret = z
  .strictObject({
    ...endpoint,
    secret: z.string().meta({ description: 'Signs every event. Keep it now: it is not shown again.' }),
  })
  .meta({
    id: 'WebhookEndpointWithSecret',
    examples: [{ ...EXAMPLE, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYq=' }],
  });
export type WebhookEndpointWithSecretView = z.infer<typeof WebhookEndpointWithSecret>;

export const WebhookEndpointList = z
  .strictObject({ data: z.array(WebhookEndpoint) })
  .meta({ id: 'WebhookEndpointList' });
export type WebhookEndpointListView = z.infer<typeof WebhookEndpointList>;

/** The secret before lives for a day, so that receivers can change theirs one after the other. */
const PREVIOUS_SECRET_S = 86_400;
const MOST_PREVIOUS_SECRET_S = 604_800;

export const RotateSecret = z
  .strictObject({
    previous_expires_in_seconds: z
      .int()
      .min(0)
      .max(MOST_PREVIOUS_SECRET_S)
      .optional()
      .meta({
        description: `How long the secret before goes on signing: ${PREVIOUS_SECRET_S} when left out, at most a
week; 0 when it has leaked.`,
      }),
  })
  .meta({ id: 'RotateSecret', description: 'The body may also be left out.', examples: [{}] })
  .optional();
export type RotateSecretCommand = z.infer<typeof RotateSecret>;

/** @returns ms. */
export function previousSecretMs(command: RotateSecretCommand): number {
  return (command?.previous_expires_in_seconds ?? PREVIOUS_SECRET_S) * 1_000;
}
