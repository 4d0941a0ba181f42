import { z } from 'zod';
import type { Instant } from '../../../domain/instant.js';
import { instant } from '../../../payments/schemas/fields.js';
import { readEventId } from '../event.js';

const DEFAULT_PAGE = 25;
const MOST_PAGE = 100;

const shownInstant = z.string().meta({ examples: ['2026-12-24T09:00:00.000000Z'] });

/** The event id of a path, read. A text of another form is answered like an event that does not exist. */
export const EventIdParam = z
  .string()
  .max(64)
  .refine((text) => readEventId(text) !== null)
  .meta({ examples: ['evt_ps5rxd2c33sdjy3m5vexukzaewrunyqk_3'] });

export const DELIVERY_RESULTS = ['pending', 'delivered', 'given_up'] as const;

export interface ListDeliveriesQuery {
  readonly limit: number;
  readonly cursor: string | null;
  readonly result: (typeof DELIVERY_RESULTS)[number] | null;
}

/** The query of the delivery log. */
export const ListDeliveries = z
  .strictObject({
    limit: z
      .string()
      .regex(/^(?:[1-9][0-9]?|100)$/)
      .meta({
        description: `Entries per page, 1 to ${MOST_PAGE}; ${DEFAULT_PAGE} when left out.`,
        examples: ['25'],
      })
      .optional(),
    cursor: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,200}$/)
      .meta({ description: 'next_cursor of the page before, with the same filter.' })
      .optional(),
    result: z.enum(DELIVERY_RESULTS).optional(),
  })
  .transform((query): ListDeliveriesQuery => ({
    limit: query.limit === undefined ? DEFAULT_PAGE : Number(query.limit),
    cursor: query.cursor ?? null,
    result: query.result ?? null,
  }));

/** One event and what became of it at one endpoint. Nothing that the receiver wrote is in it. */
export const WebhookDelivery = z
  .strictObject({
    event_id: z.string().meta({ examples: ['evt_ps5rxd2c33sdjy3m5vexukzaewrunyqk_3'] }),
    type: z.string().meta({ examples: ['payment.succeeded'] }),
    payment_id: z.string(),
    version: z.int().min(1),
    occurred_at: shownInstant,
    queued_at: shownInstant,
    result: z.enum(DELIVERY_RESULTS),
    tries: z.int().min(0),
    last_try_at: shownInstant.nullable(),
    last_code: z
      .enum([
        'delivered',
        'gone',
        'http_error',
        'redirected',
        'timed_out',
        'unreachable',
        'tls_failed',
        'name_unknown',
        'address_refused',
        'url_refused',
        'secret_unreadable',
      ])
      .nullable()
      .meta({ description: 'What the last try came to.' }),
    last_http_status: z.int().nullable(),
    last_duration_ms: z.int().min(0).nullable(),
    next_try_at: shownInstant.nullable().meta({ description: 'Null when it is done.' }),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDeliveryView = z.infer<typeof WebhookDelivery>;

export const WebhookDeliveryList = z
  .strictObject({ data: z.array(WebhookDelivery), next_cursor: z.string().nullable() })
  .meta({ id: 'WebhookDeliveryList' });
export type WebhookDeliveryListView = z.infer<typeof WebhookDeliveryList>;

/** What to send again: everything since then that did not arrive. */
export const ReplayEvents = z
  .strictObject({
    since: instant.meta({
      description: 'What happened from then on and did not arrive is sent; at most 30 days back.',
    }),
  })
  .meta({ id: 'ReplayEvents', examples: [{ since: '2026-12-24T09:00:00Z' }] });
export type ReplayEventsCommand = { readonly since: Instant };
