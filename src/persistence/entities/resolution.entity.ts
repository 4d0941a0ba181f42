import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Payment } from './payment.entity.js';

/** What one person proposes and another approves about a payment in review. Its end is written once. */
@Entity('resolution')
@Check(
  'resolution_outcome',
  `outcome IN ('succeeded', 'failed', 'submitted', 'resend', 'resend_new_generation')`,
)
@Check('resolution_reason_code', `reason_code ~ '^[a-z][a-z0-9_]{1,63}$'`)
@Check('resolution_proof_kind', `proof_kind IN ('provider_statement', 'stored_refusal', 'absence_proof')`)
@Check('resolution_two_people', 'proposed_by <> approved_by')
@Check('resolution_approval_whole', '(approved_by IS NULL) = (approved_at IS NULL)')
@Check('resolution_void_whole', '(void_reason IS NULL) = (voided_at IS NULL)')
@Check('resolution_approved_or_void', 'approved_at IS NULL OR voided_at IS NULL')
@Check('resolution_proof_whole', '(proof_kind IS NULL) = (proof_statement IS NULL)')
@Check(
  'resolution_new_generation_proven',
  `outcome <> 'resend_new_generation' OR proof_statement IS NOT NULL`,
)
@Index('resolution_one_open', ['paymentId'], {
  unique: true,
  where: 'approved_at IS NULL AND voided_at IS NULL',
})
@Index('resolution_by_payment', ['paymentId', 'proposedAt'])
export class Resolution {
  @PrimaryColumn('text', { name: 'id', primaryKeyConstraintName: 'resolution_pkey' })
  id: string;

  @ForeignKey(() => Payment, { name: 'resolution_payment' })
  @Column('text', { name: 'payment_id' })
  paymentId: string;

  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('text', { name: 'outcome' })
  outcome: string;

  @Column('text', { name: 'reason_code' })
  reasonCode: string;

  /** The version of the payment that was judged. */
  @Column('integer', { name: 'payment_version' })
  paymentVersion: number;

  /** SHA-256 over everything that was known when it was proposed. */
  @Column('bytea', { name: 'evidence_digest' })
  evidenceDigest: Buffer;

  @Column('bigint', { name: 'evidence_ids', array: true })
  evidenceIds: string[];

  @Column('text', { name: 'proof_kind', nullable: true })
  proofKind: string | null;

  @Column('text', { name: 'proof_statement', nullable: true })
  proofStatement: string | null;

  /** `person:<subject>`. */
  @Column('text', { name: 'proposed_by' })
  proposedBy: string;

  @Column('timestamptz', { name: 'proposed_at', default: () => 'clock_timestamp()' })
  proposedAt: Date;

  @Column('text', { name: 'approved_by', nullable: true })
  approvedBy: string | null;

  @Column('timestamptz', { name: 'approved_at', nullable: true })
  approvedAt: Date | null;

  @Column('timestamptz', { name: 'voided_at', nullable: true })
  voidedAt: Date | null;

  @Column('text', { name: 'void_reason', nullable: true })
  voidReason: string | null;
}
