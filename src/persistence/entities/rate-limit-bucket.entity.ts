import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Tokens that all API processes share: one row per credential and one per tenant. Unlogged. */
@Entity('rate_limit_bucket')
export class RateLimitBucket {
  @PrimaryColumn('text', { name: 'tenant_id', primaryKeyConstraintName: 'rate_limit_bucket_pkey' })
  tenantId: string;

  @PrimaryColumn('text', { name: 'bucket', primaryKeyConstraintName: 'rate_limit_bucket_pkey' })
  bucket: string;

  /** The limit of the last lease. */
  @Column('double precision', { name: 'rate_per_second' })
  ratePerSecond: number;

  @Column('integer', { name: 'burst' })
  burst: number;

  /** What was left after the last lease. */
  @Column('double precision', { name: 'tokens' })
  tokens: number;

  /** What the last lease got. */
  @Column('integer', { name: 'granted' })
  granted: number;

  @Column('timestamptz', { name: 'refilled_at' })
  refilledAt: Date;
}
