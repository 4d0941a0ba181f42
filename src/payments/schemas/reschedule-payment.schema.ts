import { z } from 'zod';
import type { Instant } from '../../domain/instant.js';
import { executeAt, instant } from './fields.js';

/** The new time; without `notAfter` the deadline moves by the same distance (T2). */
export interface ReschedulePaymentCommand {
  readonly executeAt: Instant | 'now';
  readonly notAfter?: Instant;
}

/** The body of POST /v1/payments/{id}/reschedule. What needs the clock or the row is asked later. */
export const ReschedulePayment = z
  .strictObject({
    execute_at: executeAt,
    not_after: instant
      .optional()
      .meta({ description: 'The new deadline. Left out: it moves by the same distance as execute_at.' }),
  })
  .transform((body): ReschedulePaymentCommand => ({
    executeAt: body.execute_at,
    ...(body.not_after === undefined ? {} : { notAfter: body.not_after }),
  }))
  .meta({ id: 'ReschedulePayment', examples: [{ execute_at: '2026-12-24T12:00:00Z' }] });
