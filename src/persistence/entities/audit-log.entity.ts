import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/** What a person or an operator did, or read. Append-only; a trigger sets time and database role. */
@Entity('audit_log')
@Check('audit_log_actor_one_line', `actor <> '' AND actor !~ E'[\\n\\r]'`)
@Check('audit_log_action_form', `action ~ '^[a-z][a-z0-9_]{1,63}$'`)
@Check('audit_log_target_form', `target ~ '^[A-Za-z0-9][A-Za-z0-9_.:/@|+-]{0,127}$'`)
@Check('audit_log_code_form', `code ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$'`)
@Check('audit_log_currency_form', `currency ~ '^[A-Z]{3}$'`)
@Check('audit_log_detail_one_line', `detail !~ E'[\\n\\r]' AND length(detail) <= 2000`)
@Check('audit_log_money_whole', '(amount IS NULL) = (currency IS NULL)')
@Index('audit_log_by_tenant', ['tenantId', 'at'])
@Index('audit_log_by_time', ['at'])
export class AuditLogEntry {
  @PrimaryGeneratedColumn('identity', {
    name: 'id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'audit_log_pkey',
  })
  id: string;

  @Column('timestamptz', { name: 'at', default: () => 'clock_timestamp()' })
  at: Date;

  /** Null: it concerned every tenant. */
  @Column('text', { name: 'tenant_id', nullable: true })
  tenantId: string | null;

  /** `person:<subject>`, `api_key:<id>`, or `operator:<name>` for the command line. */
  @Column('text', { name: 'actor' })
  actor: string;

  @Column('text', { name: 'db_role', default: () => 'SESSION_USER' })
  dbRole: string;

  @Column('text', { name: 'action' })
  action: string;

  /** The id of what was acted on. */
  @Column('text', { name: 'target' })
  target: string;

  @Column('text', { name: 'code', nullable: true })
  code: string | null;

  /** Minor units, with its currency. */
  @Column('bigint', { name: 'amount', nullable: true })
  amount: string | null;

  @Column('text', { name: 'currency', nullable: true })
  currency: string | null;

  /** Codes and numbers, as one line of JSON text. */
  @Column('text', { name: 'detail', default: '{}' })
  detail: string;
}
