import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Tenant } from './tenant.entity.js';

/** Where a tenant wants to hear of its payments. Signing secrets are ciphertexts; a deleted row has none. */
@Entity('webhook_endpoint')
@Check('webhook_endpoint_id_form', `id ~ '^whe_[0-9a-f]{32}$'`)
@Check('webhook_endpoint_status', `status IN ('active', 'disabled', 'deleted')`)
@Check('webhook_endpoint_reason', `status_reason IN ('by_request', 'gone', 'failing')`)
@Check(
  'webhook_endpoint_secret',
  `(secret IS NULL) = (status = 'deleted') AND (secret IS NULL) = (secret_key_id IS NULL)`,
)
@Check(
  'webhook_endpoint_previous_secret',
  `(previous_secret IS NULL) = (previous_secret_key_id IS NULL) AND (previous_secret IS NULL) = (previous_secret_until IS NULL)`,
)
@Index('webhook_endpoint_by_tenant', ['tenantId', 'createdAt', 'id'])
@Index('webhook_endpoint_active', ['tenantId'], { where: `status = 'active'` })
export class WebhookEndpoint {
  @PrimaryColumn('text', { name: 'id', primaryKeyConstraintName: 'webhook_endpoint_pkey' })
  id: string;

  @ForeignKey(() => Tenant, { name: 'webhook_endpoint_tenant' })
  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('text', { name: 'url' })
  url: string;

  @Column('text', { name: 'description', nullable: true })
  description: string | null;

  /** As `payment.succeeded`; null: all. */
  @Column('text', { name: 'event_types', array: true, nullable: true })
  eventTypes: string[] | null;

  @Column('text', { name: 'status', default: 'active' })
  status: string;

  /** Why it is disabled. */
  @Column('text', { name: 'status_reason', nullable: true })
  statusReason: string | null;

  @Column('timestamptz', { name: 'status_changed_at', default: () => 'clock_timestamp()' })
  statusChangedAt: Date;

  @Column('bytea', { name: 'secret', nullable: true })
  secret: Buffer | null;

  @Column('text', { name: 'secret_key_id', nullable: true })
  secretKeyId: string | null;

  /** The one before: signs too, until its time. */
  @Column('bytea', { name: 'previous_secret', nullable: true })
  previousSecret: Buffer | null;

  @Column('text', { name: 'previous_secret_key_id', nullable: true })
  previousSecretKeyId: string | null;

  @Column('timestamptz', { name: 'previous_secret_until', nullable: true })
  previousSecretUntil: Date | null;

  /** The first failure since the last delivery that arrived. */
  @Column('timestamptz', { name: 'failing_since', nullable: true })
  failingSince: Date | null;

  @Column('integer', { name: 'failures', default: 0 })
  failures: number;

  /** What happened since then and did not arrive is queued again; null: nothing to queue. */
  @Column('timestamptz', { name: 'replay_from', nullable: true })
  replayFrom: Date | null;

  @Column('timestamptz', { name: 'replay_asked_at', nullable: true })
  replayAskedAt: Date | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;

  @Column('text', { name: 'created_by' })
  createdBy: string;
}
