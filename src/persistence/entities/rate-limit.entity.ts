import { Check, Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { Tenant } from './tenant.entity.js';

/** A limit that a tenant has of its own; without a row the configured default counts. */
@Entity('rate_limit')
@Check('rate_limit_subject', `subject IN ('client', 'tenant')`)
@Check('rate_limit_rate', 'rate_per_second > 0 AND rate_per_second <= 100000')
@Check('rate_limit_burst', 'burst >= 1 AND burst <= 1000000')
export class RateLimitSetting {
  @PrimaryColumn('text', { name: 'tenant_id', primaryKeyConstraintName: 'rate_limit_pkey' })
  tenantId: string;

  @ManyToOne(() => Tenant)
  @JoinColumn({ name: 'tenant_id', foreignKeyConstraintName: 'rate_limit_tenant' })
  tenant: Tenant;

  @PrimaryColumn('text', { name: 'subject', primaryKeyConstraintName: 'rate_limit_pkey' })
  subject: string;

  @Column('double precision', { name: 'rate_per_second' })
  ratePerSecond: number;

  @Column('integer', { name: 'burst' })
  burst: number;

  @Column('timestamptz', { name: 'changed_at', default: () => 'clock_timestamp()' })
  changedAt: Date;
}
