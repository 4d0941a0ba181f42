import { Check, Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';
import { Payment } from './payment.entity.js';

/** One generation: one intention towards the provider under one provider key. Frozen by a trigger. */
@Entity('submission')
@Unique('submission_provider_key_unique', ['providerKey'])
@Unique('submission_commit_target_unique', ['commitTarget'])
@Check('submission_generation_positive', 'generation > 0')
@Check('submission_capability_class', `capability_class IN ('A', 'B', 'C', 'D', 'T')`)
export class Submission {
  @ForeignKey(() => Payment, { name: 'submission_payment' })
  @PrimaryColumn('text', { name: 'payment_id', primaryKeyConstraintName: 'submission_pkey' })
  paymentId: string;

  @PrimaryColumn('smallint', { name: 'generation', primaryKeyConstraintName: 'submission_pkey' })
  generation: number;

  @Column('text', { name: 'provider_key' })
  providerKey: string;

  /** Ciphertext: the request's parameters hold the destination. */
  @Column('bytea', { name: 'parameters' })
  parameters: Buffer;

  @Column('text', { name: 'parameters_key_id' })
  parametersKeyId: string;

  @Column('bytea', { name: 'parameters_sha256' })
  parametersSha256: Buffer;

  @Column('text', { name: 'adapter' })
  adapter: string;

  @Column('text', { name: 'adapter_version' })
  adapterVersion: string;

  @Column('text', { name: 'api_version' })
  apiVersion: string;

  @Column('text', { name: 'credential_id' })
  credentialId: string;

  @Column('text', { name: 'account' })
  account: string;

  @Column('text', { name: 'base_url' })
  baseUrl: string;

  /** What may be done about an open outcome: the class of the provider when the generation opened. */
  @Column('text', { name: 'capability_class', default: 'A' })
  capabilityClass: string;

  /** Two phases: the one object that may be committed; written once. */
  @Column('text', { name: 'commit_target', nullable: true })
  commitTarget: string | null;

  /** Nothing is sent again after it. */
  @Column('timestamptz', { name: 'key_valid_until', nullable: true })
  keyValidUntil: Date | null;

  @Column('timestamptz', { name: 'opened_at', default: () => 'clock_timestamp()' })
  openedAt: Date;

  @Column('text', { name: 'closed_evidence', nullable: true })
  closedEvidence: string | null;

  /** Why the next generation may exist: written proof that this one was not executed. */
  @Column('text', { name: 'proof', nullable: true })
  proof: string | null;
}
