import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/** Work to publish, written in the transaction of its cause and deleted when done. */
@Entity('outbox')
@Check('outbox_kind', `kind IN ('start', 'wake', 'cancel')`)
@Index('outbox_by_due', ['kind', 'dueAt', 'id'])
@Index('outbox_by_age', ['createdAt'])
export class OutboxEntry {
  @PrimaryGeneratedColumn('identity', {
    name: 'id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'outbox_pkey',
  })
  id: string;

  @Column('text', { name: 'kind' })
  kind: string;

  @Column('text', { name: 'payment_id' })
  paymentId: string;

  @Column('timestamptz', { name: 'due_at' })
  dueAt: Date;

  @Column('timestamptz', { name: 'taken_until', nullable: true })
  takenUntil: Date | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;
}
