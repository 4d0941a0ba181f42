import { Check, Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';

/**
 * The head row of a payment. Its state is written by the gate alone, and everything that was
 * accepted with it is frozen by triggers. Neither tenant nor lane is a foreign key: each create
 * would lock one hot row.
 */
@Entity('payment')
@Unique('payment_idempotency_key_unique', ['tenantId', 'idempotencyKey'])
@Check('payment_amount_positive', 'amount > 0')
@Check('payment_currency_form', `currency ~ '^[A-Z]{3}$'`)
@Check(
  'payment_state_known',
  `state IN ('scheduled', 'held', 'submitting', 'submitted', 'unknown', 'needs_review', 'succeeded', 'failed',
    'cancelled', 'expired', 'returned')`,
)
@Check('payment_version_positive', 'version > 0')
@Check('payment_not_after_later', 'not_after > execute_at')
@Index('payment_due', ['lane', 'executeAt', 'id'], { where: `state = 'scheduled'` })
@Index('payment_deadline', ['notAfter'], { where: `state IN ('scheduled', 'held')` })
@Index('payment_submitting', ['nextActionAt'], { where: `state = 'submitting'` })
@Index('payment_submitted', ['nextActionAt'], { where: `state = 'submitted'` })
@Index('payment_unknown', ['nextActionAt'], { where: `state = 'unknown'` })
@Index('payment_needs_review', ['updatedAt'], { where: `state = 'needs_review'` })
@Index('payment_by_creation', ['tenantId', 'createdAt', 'id'])
@Index('payment_by_reference', ['tenantId', 'reference', 'createdAt', 'id'], {
  where: 'reference IS NOT NULL',
})
@Index('payment_by_provider_ref', ['providerRef'], { where: 'provider_ref IS NOT NULL' })
@Index('payment_woken', ['lastWokenAt'], { where: 'last_woken_at IS NOT NULL' })
export class Payment {
  @PrimaryColumn('text', { name: 'id', primaryKeyConstraintName: 'payment_pkey' })
  id: string;

  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('text', { name: 'idempotency_key' })
  idempotencyKey: string;

  @Column('bytea', { name: 'fingerprint' })
  fingerprint: Buffer;

  @Column('smallint', { name: 'fingerprint_version' })
  fingerprintVersion: number;

  /** Minor units of the currency. */
  @Column('bigint', { name: 'amount', transformer: bigintTransformer })
  amount: bigint;

  @Column('text', { name: 'currency' })
  currency: string;

  /** Ciphertext. */
  @Column('bytea', { name: 'destination' })
  destination: Buffer;

  @Column('text', { name: 'destination_key_id' })
  destinationKeyId: string;

  @Column('bytea', { name: 'destination_digest' })
  destinationDigest: Buffer;

  @Column('text', { name: 'digest_key_id' })
  digestKeyId: string;

  @Column('text', { name: 'provider' })
  provider: string;

  @Column('text', { name: 'lane' })
  lane: string;

  @Column('text', { name: 'reference', nullable: true })
  reference: string | null;

  @Column('text', { name: 'description', nullable: true })
  description: string | null;

  @Column('jsonb', { name: 'metadata', nullable: true })
  metadata: Record<string, string> | null;

  @Column('timestamptz', { name: 'execute_at' })
  executeAt: Date;

  @Column('timestamptz', { name: 'not_after' })
  notAfter: Date;

  @Column('text', { name: 'state' })
  state: string;

  @Column('integer', { name: 'version', default: 1 })
  version: number;

  @Column('timestamptz', { name: 'submission_started_at', nullable: true })
  submissionStartedAt: Date | null;

  @Column('text', { name: 'provider_ref', nullable: true })
  providerRef: string | null;

  /** The next retry or inquiry. */
  @Column('timestamptz', { name: 'next_action_at', nullable: true })
  nextActionAt: Date | null;

  @Column('timestamptz', { name: 'last_woken_at', nullable: true })
  lastWokenAt: Date | null;

  @Column('timestamptz', { name: 'wake_after', nullable: true })
  wakeAfter: Date | null;

  @Column('text', { name: 'armed_by', nullable: true })
  armedBy: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'clock_timestamp()' })
  updatedAt: Date;

  @Column('text', { name: 'created_by' })
  createdBy: string;
}
