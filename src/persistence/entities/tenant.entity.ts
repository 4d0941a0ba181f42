import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** Who owns payments. The pseudonym is what Temporal and logs may show. */
@Entity('tenant')
@Unique('tenant_pseudonym_unique', ['pseudonym'])
@Check('tenant_lateness_limit_positive', 'lateness_limit_seconds > 0')
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

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;
}
