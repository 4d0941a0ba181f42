import { z } from 'zod';
import { parseCurrency } from '../../domain/currency.js';
import { DomainError } from '../../domain/domain-error.js';
import type { Instant } from '../../domain/instant.js';
import { money, type Money } from '../../domain/money.js';
import {
  amount,
  currency,
  description,
  destination,
  executeAt,
  instant,
  metadata,
  provider,
  reference,
} from './fields.js';

/** A create as the client asked for it, validated. What was left out is absent. */
export interface CreatePaymentCommand {
  readonly money: Money;
  /** Opaque to us. Encrypted at rest; never in a log, a metric, a workflow or an error. */
  readonly destination: string;
  readonly executeAt: Instant | 'now';
  readonly notAfter?: Instant;
  readonly reference?: string;
  readonly description?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly provider?: string;
}

const members = z.strictObject({
  amount,
  currency,
  destination,
  execute_at: executeAt,
  not_after: instant
    .optional()
    .meta({ description: 'After this moment the payment expires unsent. Default: execute_at plus 24 h.' }),
  reference: reference.optional(),
  description: description.optional(),
  metadata: metadata.optional(),
  provider: provider.optional(),
});

/**
 * The body of POST /v1/payments. Input: the members above, no others. Output: the command.
 *
 * Faults of single members are issues (400). Only a body without any is asked what needs two
 * thoughts: the transform throws DomainError `currency_unsupported` (422) for a code outside the
 * pinned table. Whatever needs the clock, the row or a limit is not asked here, so that a repeat
 * stays a replay.
 */
export const CreatePayment = members
  .transform((body): CreatePaymentCommand => {
    const parsed = parseCurrency(body.currency);
    if (parsed.kind !== 'currency') throw new DomainError('currency_unsupported');
    return {
      money: money(BigInt(body.amount), parsed.currency),
      destination: body.destination,
      executeAt: body.execute_at,
      ...(body.not_after === undefined ? {} : { notAfter: body.not_after }),
      ...(body.reference === undefined ? {} : { reference: body.reference }),
      ...(body.description === undefined ? {} : { description: body.description }),
      ...(body.metadata === undefined ? {} : { metadata: body.metadata }),
      ...(body.provider === undefined ? {} : { provider: body.provider }),
    };
  })
  .meta({
    id: 'CreatePayment',
    examples: [
      {
        amount: 1999,
        currency: 'EUR',
        destination: 'acct_1032D82eZvKYlo2C',
        execute_at: '2026-12-24T09:00:00Z',
        reference: 'invoice-2041',
      },
    ],
  });
