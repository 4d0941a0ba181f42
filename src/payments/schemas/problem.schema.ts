import { z } from 'zod';
import { FIELD_CODES, PROBLEM_CODES, type ProblemCode } from '../../domain/domain-error.js';
import { PAYMENT_STATES } from '../../domain/payment-state.js';

/** Every refusal and error: RFC 9457, `application/problem+json`. Never holds what a client sent. */
export const Problem = z
  .looseObject({
    type: z.string().meta({ description: 'urn:problem: and the code.' }),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string(),
    instance: z.string().meta({ description: 'urn:request: and the request id.' }),
    code: z.enum(PROBLEM_CODES as readonly [ProblemCode, ...ProblemCode[]]),
    request_id: z.string(),
    retryable: z.boolean().meta({ description: 'The same request may succeed later.' }),
    state: z.enum(PAYMENT_STATES).optional(),
    version: z.int().min(1).optional(),
    errors: z
      .array(
        z.strictObject({
          pointer: z.string().meta({ description: 'JSON pointer (RFC 6901) into the body or the query.' }),
          code: z.enum(FIELD_CODES),
        }),
      )
      .optional(),
  })
  .meta({
    id: 'Problem',
    examples: [
      {
        type: 'urn:problem:submission_started',
        title: 'Submission started',
        status: 409,
        detail: 'The payment may already be at the provider. Follow it with GET until its state is final.',
        instance: 'urn:request:019b1f0a-0000-7000-8000-000000000000',
        code: 'submission_started',
        request_id: '019b1f0a-0000-7000-8000-000000000000',
        retryable: false,
        state: 'submitting',
        version: 2,
        submission_started_at: '2026-12-24T09:00:00.004210Z',
        may_have_moved: true,
      },
    ],
  });
