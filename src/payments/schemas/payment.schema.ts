import { z } from 'zod';
import { PAYMENT_STATES } from '../../domain/payment-state.js';

const shownInstant = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/)
  .meta({ examples: ['2026-12-24T09:00:00.000000Z'] });

/** A payment as it is now. Times are of the database's clock, in UTC with 6 fraction digits. */
export const Payment = z
  .strictObject({
    id: z.string().regex(/^pay_[a-z2-7]{32}$/),
    state: z.enum(PAYMENT_STATES),
    version: z.int().min(1).meta({ description: 'Grows by one with every change; also the entity tag.' }),
    amount: z.int().min(1).meta({ description: 'Whole minor units of the currency.' }),
    currency: z.string().regex(/^[A-Z]{3}$/),
    destination: z
      .string()
      .nullable()
      .meta({ description: 'Null once the tenant was forgotten: nobody can read it any more.' }),
    provider: z.string(),
    reference: z.string().nullable(),
    description: z.string().nullable(),
    metadata: z.record(z.string(), z.string()),
    execute_at: shownInstant,
    not_after: shownInstant,
    submission_started_at: shownInstant
      .nullable()
      .meta({ description: 'From here on it cannot be cancelled: the provider may have it.' }),
    first_call_at: shownInstant.nullable().meta({
      description: 'When the first call to the provider began; less execute_at it is the lateness.',
    }),
    lateness_ms: z
      .int()
      .nullable()
      .meta({ description: 'first_call_at less execute_at in whole milliseconds; null before the call.' }),
    provider_ref: z.string().nullable().meta({ description: "The provider's own name for the payment." }),
    next_action_at: shownInstant
      .nullable()
      .meta({ description: 'When it is tried or asked about again; null when nothing is planned.' }),
    created_at: shownInstant,
    updated_at: shownInstant,
  })
  .meta({
    id: 'Payment',
    examples: [
      {
        id: 'pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
        state: 'scheduled',
        version: 1,
        amount: 1999,
        currency: 'EUR',
        destination: 'acct_1032D82eZvKYlo2C',
        provider: 'stripe',
        reference: 'invoice-2041',
        description: 'December payout',
        metadata: { team: 'north' },
        execute_at: '2026-12-24T09:00:00.000000Z',
        not_after: '2026-12-24T18:00:00.000000Z',
        submission_started_at: null,
        first_call_at: null,
        lateness_ms: null,
        provider_ref: null,
        next_action_at: null,
        created_at: '2026-12-01T08:30:00.000000Z',
        updated_at: '2026-12-01T08:30:00.000000Z',
      },
    ],
  });
export type PaymentView = z.output<typeof Payment>;

/** One page, newest first. `next_cursor` is null on the last page. */
export const PaymentList = z
  .strictObject({ data: z.array(Payment), next_cursor: z.string().nullable() })
  .meta({ id: 'PaymentList' });
export type PaymentListView = z.output<typeof PaymentList>;

const Transition = z
  .strictObject({
    kind: z.literal('transition'),
    at: shownInstant,
    seq: z.int().min(1),
    from: z.enum(PAYMENT_STATES).nullable(),
    to: z.enum(PAYMENT_STATES),
    cause: z.string(),
    actor: z.string(),
    detail: z.record(z.string(), z.unknown()).meta({ description: 'Codes and numbers, never free text.' }),
  })
  .meta({ id: 'HistoryTransition' });

const Attempt = z
  .strictObject({
    kind: z.literal('attempt'),
    at: shownInstant,
    generation: z.int().min(1),
    attempt: z.int().min(1),
    phase: z.enum(['submit', 'commit']),
    call_started_at: shownInstant.nullable(),
    closed_at: shownInstant.nullable(),
    evidence: z.string().nullable(),
    result_class: z.string().nullable(),
    code: z.string().nullable(),
    provider_ref: z.string().nullable(),
    http_status: z.int().nullable(),
    replayed: z.boolean().nullable(),
  })
  .meta({ id: 'HistoryAttempt' });

const EvidenceEntry = z
  .strictObject({
    kind: z.literal('evidence'),
    at: shownInstant,
    source: z.string(),
    evidence: z.string(),
    generation: z.int().nullable(),
    attempt: z.int().nullable(),
    code: z.string().nullable(),
    provider_ref: z.string().nullable(),
    status: z.string().nullable(),
    observed_amount: z
      .string()
      .nullable()
      .meta({ description: 'Minor units that the provider named, as digits.' }),
    observed_currency: z.string().nullable(),
  })
  .meta({ id: 'HistoryEvidence' });

export const HistoryEntry = z.discriminatedUnion('kind', [Transition, Attempt, EvidenceEntry]);
export type HistoryEntryView = z.output<typeof HistoryEntry>;

/** Everything that happened to a payment, oldest first. */
export const PaymentHistory = z
  .strictObject({ payment_id: z.string(), data: z.array(HistoryEntry), has_more: z.boolean() })
  .meta({ id: 'PaymentHistory' });
export type PaymentHistoryView = z.output<typeof PaymentHistory>;
