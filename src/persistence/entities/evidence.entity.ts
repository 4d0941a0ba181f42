import { Check, Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';
import { Payment } from './payment.entity.js';

/** One piece of news about a payment, from whatever source. Append-only. */
@Entity('evidence')
@Check('evidence_source', `source IN ('answer', 'late_answer', 'lookup', 'webhook', 'settlement', 'person')`)
@Index('evidence_by_payment', ['paymentId', 'at'])
export class EvidenceEntry {
  @PrimaryGeneratedColumn('identity', {
    name: 'id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'evidence_pkey',
  })
  id: string;

  @ForeignKey(() => Payment, { name: 'evidence_payment' })
  @Column('text', { name: 'payment_id' })
  paymentId: string;

  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('smallint', { name: 'generation', nullable: true })
  generation: number | null;

  @Column('smallint', { name: 'attempt_no', nullable: true })
  attemptNo: number | null;

  @Column('text', { name: 'source' })
  source: string;

  @Column('text', { name: 'kind' })
  kind: string;

  @Column('text', { name: 'code', nullable: true })
  code: string | null;

  @Column('text', { name: 'provider_ref', nullable: true })
  providerRef: string | null;

  @Column('text', { name: 'status', nullable: true })
  status: string | null;

  /** Minor units, as the provider told. */
  @Column('bigint', { name: 'observed_amount', nullable: true, transformer: bigintTransformer })
  observedAmount: bigint | null;

  @Column('text', { name: 'observed_currency', nullable: true })
  observedCurrency: string | null;

  /** Ways of a lookup that said `absent`, or that found a known object. */
  @Column('text', { name: 'paths', array: true, nullable: true })
  paths: string[] | null;

  @Column('timestamptz', { name: 'at', default: () => 'clock_timestamp()' })
  at: Date;
}
