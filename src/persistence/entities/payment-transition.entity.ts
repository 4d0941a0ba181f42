import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Payment } from './payment.entity.js';

/** One immutable row of a payment's history. A trigger sets its time and its hash. */
@Entity('payment_transition')
@Check('payment_transition_seq_positive', 'seq > 0')
@Check('payment_transition_actor_one_line', `actor !~ E'[\\n\\r]'`)
@Check('payment_transition_detail_one_line', `detail !~ E'[\\n\\r]'`)
@Index('payment_transition_by_time', ['at'])
@Index('payment_transition_by_xact', ['xact'])
export class PaymentTransition {
  @ForeignKey(() => Payment, { name: 'payment_transition_payment' })
  @PrimaryColumn('text', { name: 'payment_id', primaryKeyConstraintName: 'payment_transition_pkey' })
  paymentId: string;

  @PrimaryColumn('integer', { name: 'seq', primaryKeyConstraintName: 'payment_transition_pkey' })
  seq: number;

  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  /** Null only for the first. */
  @Column('text', { name: 'from_state', nullable: true })
  fromState: string | null;

  @Column('text', { name: 'to_state' })
  toState: string;

  @Column('text', { name: 'cause' })
  cause: string;

  @Column('text', { name: 'actor' })
  actor: string;

  @Column('timestamptz', { name: 'at', default: () => 'clock_timestamp()' })
  at: Date;

  /** Codes only, as one line of JSON text: hashed as text. */
  @Column('text', { name: 'detail', default: '{}' })
  detail: string;

  @Column('bytea', { name: 'hash' })
  hash: Buffer;

  /** The transaction that wrote it, by which anchors find it; 0: older than anchors. Set by the trigger. */
  @Column('bigint', { name: 'xact', default: 0 })
  xact: string;
}
