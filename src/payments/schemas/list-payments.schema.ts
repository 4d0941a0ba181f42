import { z } from 'zod';
import type { Instant } from '../../domain/instant.js';
import { PAYMENT_STATES, type PaymentState } from '../../domain/payment-state.js';
import { instant, knownCurrency, provider, reference } from './fields.js';

export const DEFAULT_PAGE = 25;
export const MAX_PAGE = 100;

/** A list's page size, where it goes on, and what narrows it. Ranges: from included, before not. */
export interface ListPaymentsQuery {
  readonly limit: number;
  /** Opaque and not verified yet. */
  readonly cursor: string | null;
  readonly filter: {
    readonly state?: PaymentState;
    readonly currency?: string;
    readonly provider?: string;
    readonly reference?: string;
    readonly executeAtFrom?: Instant;
    readonly executeAtBefore?: Instant;
    readonly createdAtFrom?: Instant;
    readonly createdAtBefore?: Instant;
  };
}

const limit = z
  .string()
  .regex(/^(?:[1-9][0-9]?|100)$/)
  .meta({
    description: `Payments per page, 1 to ${MAX_PAGE}; ${DEFAULT_PAGE} when left out.`,
    examples: ['25'],
  });

const cursor = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,512}$/)
  .meta({ description: 'next_cursor of the page before, with the same filters.' });

/** The query of GET /v1/payments. A parameter given twice is of the wrong type. */
export const ListPayments = z
  .strictObject({
    limit: limit.optional(),
    cursor: cursor.optional(),
    state: z.enum(PAYMENT_STATES).optional(),
    currency: knownCurrency.optional(),
    provider: provider.optional(),
    reference: reference.optional(),
    execute_at_from: instant.optional(),
    execute_at_before: instant.optional(),
    created_at_from: instant.optional(),
    created_at_before: instant.optional(),
  })
  .transform((query): ListPaymentsQuery => {
    const filter = {
      state: query.state,
      currency: query.currency,
      provider: query.provider,
      reference: query.reference,
      executeAtFrom: query.execute_at_from,
      executeAtBefore: query.execute_at_before,
      createdAtFrom: query.created_at_from,
      createdAtBefore: query.created_at_before,
    };
    return {
      limit: query.limit === undefined ? DEFAULT_PAGE : Number(query.limit),
      cursor: query.cursor ?? null,
      filter: Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
    };
  });
