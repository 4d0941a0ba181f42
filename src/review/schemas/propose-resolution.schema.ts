import { z } from 'zod';
import { line } from '../../payments/schemas/fields.js';
import { OUTCOMES, PROOF_KINDS, REASON_CODES, type Proposal } from '../resolution.js';

const MAX_CITED = 50;

const evidenceId = z
  .string()
  .regex(/^[1-9][0-9]{0,17}$/)
  .meta({ description: 'The id of a row of evidence, as the review shows it.', examples: ['4711'] });

/** The body of POST /v1/payments/{id}/resolutions. What needs the payment is asked later. */
export const ProposeResolution = z
  .strictObject({
    outcome: z.enum(OUTCOMES).meta({
      description:
        'What the payment becomes. resend: sent again under the same provider key; resend_new_generation: under another one, which needs a proof.',
    }),
    reason_code: z.enum(REASON_CODES).meta({ description: 'Why, as one word.' }),
    evidence: z
      .array(evidenceId)
      .max(MAX_CITED)
      .optional()
      .meta({ description: 'The rows of evidence that the decision rests on.' }),
    proof: z
      .strictObject({
        kind: z.enum(PROOF_KINDS),
        statement: line(500).meta({
          minLength: 1,
          maxLength: 500,
          description: 'What was said or found, by whom and when, and where it is kept. One line.',
        }),
      })
      .optional()
      .meta({ description: 'A proof in writing.' }),
  })
  .transform((body): Proposal => ({
    outcome: body.outcome,
    reasonCode: body.reason_code,
    evidenceIds: [...new Set(body.evidence ?? [])].map(BigInt).sort((a, b) => (a < b ? -1 : 1)),
    proof: body.proof ?? null,
  }))
  .meta({
    id: 'ProposeResolution',
    examples: [{ outcome: 'succeeded', reason_code: 'settlement_shows', evidence: ['4711'] }],
  });
