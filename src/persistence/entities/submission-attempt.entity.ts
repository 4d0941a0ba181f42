import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Submission } from './submission.entity.js';

/** One network call, or one proven non-call, inside a generation. At most one is open per payment. */
@Entity('submission_attempt')
@ForeignKey(() => Submission, ['paymentId', 'generation'], ['paymentId', 'generation'], {
  name: 'submission_attempt_submission',
})
@Check('submission_attempt_no_positive', 'no > 0')
@Check('submission_attempt_phase', `phase IN ('submit', 'commit')`)
@Check('submission_attempt_evidence', `evidence IN ('not_sent', 'accepted', 'refused', 'ambiguous')`)
@Check('submission_attempt_closed_with_evidence', '(closed_at IS NULL) = (evidence IS NULL)')
@Check('submission_attempt_fence_has_owner', 'call_started_at IS NULL OR owner IS NOT NULL')
@Index('submission_attempt_one_open', ['paymentId'], { unique: true, where: 'closed_at IS NULL' })
@Index('submission_attempt_by_owner', ['owner', 'closedAt'], { where: 'owner IS NOT NULL' })
export class SubmissionAttempt {
  @PrimaryColumn('text', { name: 'payment_id', primaryKeyConstraintName: 'submission_attempt_pkey' })
  paymentId: string;

  @PrimaryColumn('smallint', { name: 'generation', primaryKeyConstraintName: 'submission_attempt_pkey' })
  generation: number;

  @PrimaryColumn('smallint', { name: 'no', primaryKeyConstraintName: 'submission_attempt_pkey' })
  no: number;

  /** The worker that claimed it; null until then. */
  @Column('text', { name: 'owner', nullable: true })
  owner: string | null;

  @Column('text', { name: 'phase', default: 'submit' })
  phase: string;

  @Column('timestamptz', { name: 'opened_at', default: () => 'clock_timestamp()' })
  openedAt: Date;

  /** The fence: committed before the first byte goes out. */
  @Column('timestamptz', { name: 'call_started_at', nullable: true })
  callStartedAt: Date | null;

  @Column('timestamptz', { name: 'closed_at', nullable: true })
  closedAt: Date | null;

  @Column('text', { name: 'result_class', nullable: true })
  resultClass: string | null;

  @Column('text', { name: 'evidence', nullable: true })
  evidence: string | null;

  @Column('text', { name: 'code', nullable: true })
  code: string | null;

  @Column('text', { name: 'provider_ref', nullable: true })
  providerRef: string | null;

  @Column('text', { name: 'request_id', nullable: true })
  requestId: string | null;

  @Column('smallint', { name: 'http_status', nullable: true })
  httpStatus: number | null;

  @Column('boolean', { name: 'replayed', default: false })
  replayed: boolean;

  /** The one call that a lane let through to see whether its provider is well again. */
  @Column('boolean', { name: 'is_probe', default: false })
  isProbe: boolean;
}
