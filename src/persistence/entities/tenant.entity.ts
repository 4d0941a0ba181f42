import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';

/** Who owns payments. The pseudonym is what Temporal and logs may show. */
@Entity('tenant')
@Unique('tenant_pseudonym_unique', ['pseudonym'])
@Check('tenant_lateness_limit_positive', 'lateness_limit_seconds > 0')
@Check(
  'tenant_class_d_capped',
  'NOT allows_class_d OR (class_d_max_minor IS NOT NULL AND class_d_max_minor > 0)',
)
export class Tenant {
  @PrimaryColumn('text', { name: 'id', primaryKeyConstraintName: 'tenant_pkey' })
  id: string;

  @Column('text', { name: 'pseudonym' })
  pseudonym: string;

  /** Default distance from execute_at to not_after. */
  @Column('integer', { name: 'lateness_limit_seconds', default: 86_400 })
  latenessLimitSeconds: number;

  @Column('boolean', { name: 'unique_references', default: false })
  uniqueReferences: boolean;

  /** Agreed to providers that can neither recognise a repeat nor be asked about a payment (class D). */
  @Column('boolean', { name: 'allows_class_d', default: false })
  allowsClassD: boolean;

  /** Largest amount of one payment there, minor units of whatever currency. */
  @Column('bigint', { name: 'class_d_max_minor', nullable: true, transformer: bigintTransformer })
  classDMaxMinor: bigint | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;
}
