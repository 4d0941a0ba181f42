import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { Payment } from './payment.entity.js';

/** What people have to decide. At most one is open per payment. */
@Entity('review_case')
@Index('review_case_one_open', ['paymentId'], { unique: true, where: 'closed_at IS NULL' })
@Index('review_case_open', ['tenantId', 'id'], { where: 'closed_at IS NULL' })
@Index('review_case_by_payment', ['paymentId', 'id'])
export class ReviewCase {
  @PrimaryGeneratedColumn('identity', {
    name: 'id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'review_case_pkey',
  })
  id: string;

  @ForeignKey(() => Payment, { name: 'review_case_payment' })
  @Column('text', { name: 'payment_id' })
  paymentId: string;

  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('text', { name: 'reason' })
  reason: string;

  @Column('text', { name: 'owner', nullable: true })
  owner: string | null;

  @Column('timestamptz', { name: 'opened_at', default: () => 'clock_timestamp()' })
  openedAt: Date;

  @Column('timestamptz', { name: 'due_at' })
  dueAt: Date;

  @Column('timestamptz', { name: 'closed_at', nullable: true })
  closedAt: Date | null;

  @Column('text', { name: 'closed_by', nullable: true })
  closedBy: string | null;

  /** When somebody last took the case. */
  @Column('timestamptz', { name: 'owned_at', nullable: true })
  ownedAt: Date | null;

  /** What ended it: the cause of the move, or the reason that a person gave. */
  @Column('text', { name: 'close_reason', nullable: true })
  closeReason: string | null;
}
