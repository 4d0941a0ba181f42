import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** One transition that one endpoint is told of. Open until `done_at`; kept for a month as the log. */
@Entity('webhook_delivery')
@Check('webhook_delivery_result', `result IN ('delivered', 'given_up')`)
@Check('webhook_delivery_done_with_result', '(done_at IS NULL) = (result IS NULL)')
@Index('webhook_delivery_due', ['endpointId', 'nextTryAt', 'paymentId', 'version'], {
  where: 'done_at IS NULL',
})
@Index('webhook_delivery_log', ['endpointId', 'createdAt', 'paymentId', 'version'])
export class WebhookDelivery {
  @PrimaryColumn('text', { name: 'endpoint_id', primaryKeyConstraintName: 'webhook_delivery_pkey' })
  endpointId: string;

  @PrimaryColumn('text', { name: 'payment_id', primaryKeyConstraintName: 'webhook_delivery_pkey' })
  paymentId: string;

  @PrimaryColumn('integer', { name: 'version', primaryKeyConstraintName: 'webhook_delivery_pkey' })
  version: number;

  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('text', { name: 'state' })
  state: string;

  @Column('timestamptz', { name: 'occurred_at' })
  occurredAt: Date;

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'next_try_at', default: () => 'clock_timestamp()' })
  nextTryAt: Date;

  @Column('timestamptz', { name: 'taken_until', nullable: true })
  takenUntil: Date | null;

  /** How often it was taken: who records a try shows that nobody took it since. */
  @Column('integer', { name: 'takes', default: 0 })
  takes: number;

  /** Tries that ended, since it was queued. */
  @Column('integer', { name: 'tries', default: 0 })
  tries: number;

  @Column('timestamptz', { name: 'last_try_at', nullable: true })
  lastTryAt: Date | null;

  /** What the last try came to; a closed list of codes. */
  @Column('text', { name: 'last_code', nullable: true })
  lastCode: string | null;

  @Column('smallint', { name: 'last_http_status', nullable: true })
  lastHttpStatus: number | null;

  @Column('integer', { name: 'last_ms', nullable: true })
  lastMs: number | null;

  @Column('text', { name: 'result', nullable: true })
  result: string | null;

  @Column('timestamptz', { name: 'done_at', nullable: true })
  doneAt: Date | null;
}
