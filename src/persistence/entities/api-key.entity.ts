import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Tenant } from './tenant.entity.js';

/** A machine's credential. Only the keyed digest of its secret is stored. */
@Entity('api_key')
@Index('api_key_by_tenant', ['tenantId'])
@Check(
  'api_key_scopes_of_machines',
  `scopes <@ ARRAY['payments:create', 'payments:read', 'payments:cancel', 'payments:update', 'webhooks:manage']`,
)
@Check('api_key_one_year', `expires_at <= created_at + interval '365 days 1 minute'`)
export class ApiKey {
  @PrimaryColumn('text', { name: 'id', primaryKeyConstraintName: 'api_key_pkey' })
  id: string;

  @ForeignKey(() => Tenant, { name: 'api_key_tenant' })
  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('text', { name: 'name' })
  name: string;

  @Column('text', { name: 'scopes', array: true })
  scopes: string[];

  @Column('bytea', { name: 'digest' })
  digest: Buffer;

  @Column('text', { name: 'pepper_key_id' })
  pepperKeyId: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt: Date | null;
}
