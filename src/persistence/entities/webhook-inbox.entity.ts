import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { Payment } from './payment.entity.js';

/**
 * One event of a provider, kept for ever: its id answers every repeat. Open until `processed_at`;
 * what it says and what came over the wire are ciphertexts, since both may hold a destination.
 */
@Entity('webhook_inbox')
@Unique('webhook_inbox_event_unique', ['provider', 'account', 'eventId'])
@Index('webhook_inbox_open', ['provider', 'nextTryAt', 'id'], { where: 'processed_at IS NULL' })
export class WebhookInboxEntry {
  @PrimaryGeneratedColumn('identity', {
    name: 'id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'webhook_inbox_pkey',
  })
  id: string;

  @Column('text', { name: 'provider' })
  provider: string;

  @Column('text', { name: 'account' })
  account: string;

  @Column('text', { name: 'event_id' })
  eventId: string;

  /** The provider's word for what happened. */
  @Column('text', { name: 'type' })
  type: string;

  /** On the provider's clock; null when it does not say. */
  @Column('timestamptz', { name: 'occurred_at', nullable: true })
  occurredAt: Date | null;

  /** Ciphertext of the event as the adapter understood it. */
  @Column('bytea', { name: 'event' })
  event: Buffer;

  /** Ciphertext of the first 4 KiB of the request's body. */
  @Column('bytea', { name: 'body' })
  body: Buffer;

  @Column('text', { name: 'key_id' })
  keyId: string;

  @Column('timestamptz', { name: 'received_at', default: () => 'clock_timestamp()' })
  receivedAt: Date;

  /** Set once, when the event is matched to its payment. */
  @ForeignKey(() => Payment, { name: 'webhook_inbox_payment' })
  @Column('text', { name: 'payment_id', nullable: true })
  paymentId: string | null;

  @Column('integer', { name: 'tries', default: 0 })
  tries: number;

  @Column('timestamptz', { name: 'next_try_at', default: () => 'clock_timestamp()' })
  nextTryAt: Date;

  @Column('timestamptz', { name: 'taken_until', nullable: true })
  takenUntil: Date | null;

  /** What the last try came to; a closed list of codes. */
  @Column('text', { name: 'result', nullable: true })
  result: string | null;

  @Column('timestamptz', { name: 'processed_at', nullable: true })
  processedAt: Date | null;
}
