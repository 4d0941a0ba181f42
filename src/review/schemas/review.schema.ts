import { z } from 'zod';
import { PAYMENT_STATES } from '../../domain/payment-state.js';
import { OUTCOMES, PROOF_KINDS, REASON_CODES } from '../resolution.js';

const shownInstant = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/)
  .meta({ examples: ['2026-12-24T09:00:00.000000Z'] });

/** One proposal and its end. */
export const Resolution = z
  .strictObject({
    id: z.string(),
    payment_id: z.string(),
    status: z
      .enum(['proposed', 'approved', 'void'])
      .meta({ description: 'proposed: it waits for a second person.' }),
    outcome: z.enum(OUTCOMES),
    reason_code: z.enum(REASON_CODES),
    payment_version: z.int().min(1).meta({ description: 'The version of the payment that was judged.' }),
    evidence: z.array(z.string()),
    proof: z.strictObject({ kind: z.enum(PROOF_KINDS), statement: z.string() }).nullable(),
    proposed_by: z.string(),
    proposed_at: shownInstant,
    expires_at: shownInstant.meta({ description: 'After this nobody can approve it.' }),
    approved_by: z.string().nullable(),
    approved_at: shownInstant.nullable(),
    voided_at: shownInstant.nullable(),
    void_reason: z
      .string()
      .nullable()
      .meta({
        description:
          'Why nobody can approve it any more, as a code: superseded, expired, evidence_changed, payment_moved, ' +
          'proposer_revoked.',
      }),
  })
  .meta({ id: 'Resolution' });
export type ResolutionView = z.output<typeof Resolution>;

const reviewMembers = {
  case_id: z.string(),
  payment_id: z.string(),
  reason: z.string().meta({ description: 'Why people are asked, as a code.' }),
  state: z.enum(PAYMENT_STATES),
  version: z.int().min(1),
  owner: z.string().nullable(),
  owned_at: shownInstant.nullable(),
  opened_at: shownInstant,
  due_at: shownInstant.meta({ description: 'After this the case is overdue.' }),
  age_seconds: z.int().min(0),
  overdue: z.boolean(),
  amount_at_risk: z.int().min(1).meta({ description: 'Whole minor units of the currency.' }),
  currency: z.string(),
  provider: z.string(),
  reference: z.string().nullable(),
  open_resolution: z
    .string()
    .nullable()
    .meta({ description: 'The proposal that waits for a second person.' }),
  closed_at: shownInstant.nullable(),
  closed_by: z.string().nullable(),
  close_reason: z.string().nullable(),
};

/** One case. */
export const Review = z.strictObject(reviewMembers).meta({ id: 'Review' });
export type ReviewView = z.output<typeof Review>;

/** One page of open cases, oldest first. */
export const ReviewList = z
  .strictObject({ data: z.array(Review), next_cursor: z.string().nullable() })
  .meta({ id: 'ReviewList' });
export type ReviewListView = z.output<typeof ReviewList>;

const ReviewEvidence = z
  .strictObject({
    id: z.string().meta({ description: 'What a proposal names in `evidence`.' }),
    at: shownInstant,
    source: z.string(),
    evidence: z.string(),
    generation: z.int().nullable(),
    attempt: z.int().nullable(),
    code: z.string().nullable(),
    provider_ref: z.string().nullable(),
    status: z.string().nullable(),
    observed_amount: z.string().nullable().meta({ description: 'Minor units, as digits.' }),
    observed_currency: z.string().nullable(),
  })
  .meta({ id: 'ReviewEvidence' });

/** A case with what is known and what was proposed, oldest first. */
export const ReviewDetail = z
  .strictObject({ ...reviewMembers, evidence: z.array(ReviewEvidence), resolutions: z.array(Resolution) })
  .meta({ id: 'ReviewDetail' });
export type ReviewDetailView = z.output<typeof ReviewDetail>;
