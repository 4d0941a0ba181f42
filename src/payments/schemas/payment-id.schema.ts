import { z } from 'zod';
import { isPaymentId, type PaymentId } from '../../domain/payment-id.js';

/**
 * The `id` of a path. A text of another form is answered like an id that does not exist: 404, so
 * that the answer says nothing about either.
 */
export const PaymentIdParam = z
  .string()
  .transform((text, context): PaymentId => {
    if (isPaymentId(text)) return text;
    context.issues.push({ code: 'custom', message: 'malformed', input: undefined });
    return z.NEVER;
  })
  .meta({ pattern: '^pay_[a-z2-7]{32}$', examples: ['pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk'] });
