import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';

/** One line of a provider's settlement file and what we make of it. Amounts in minor units, signed. */
@Entity('settlement_row')
@Check('settlement_row_kind', `kind IN ('payment', 'return', 'other')`)
@Check(
  'settlement_row_bucket',
  `bucket IN ('matched', 'late', 'returned', 'other', 'amount_differs', 'currency_differs', 'fee_differs',
    'sign_flipped', 'unexpected_at_provider')`,
)
@Check('settlement_row_follow_up', `follow_up IN ('settle', 'contradict', 'return')`)
@Index('settlement_row_by_payment', ['paymentId'], { where: 'payment_id IS NOT NULL' })
@Index('settlement_row_trouble', ['fileId', 'rowNo'], { where: `bucket NOT IN ('matched', 'other')` })
@Index('settlement_row_open', ['fileId', 'rowNo'], { where: 'follow_up IS NOT NULL' })
@Index('settlement_row_unexpected', ['provider', 'txnId'], {
  where: `bucket = 'unexpected_at_provider' AND payment_id IS NULL`,
})
export class SettlementRow {
  @PrimaryColumn('text', { name: 'provider', primaryKeyConstraintName: 'settlement_row_pkey' })
  provider: string;

  /** The provider's own id of the line. */
  @PrimaryColumn('text', { name: 'txn_id', primaryKeyConstraintName: 'settlement_row_pkey' })
  txnId: string;

  @Column('bigint', { name: 'file_id' })
  fileId: string;

  @Column('integer', { name: 'row_no' })
  rowNo: number;

  @Column('text', { name: 'kind' })
  kind: string;

  /** The provider's object that the line is about: our provider_ref. */
  @Column('text', { name: 'source_id', nullable: true })
  sourceId: string | null;

  /** Our reference as it was written. */
  @Column('text', { name: 'reference', nullable: true })
  reference: string | null;

  @Column('bigint', { name: 'gross', transformer: bigintTransformer })
  gross: bigint;

  @Column('bigint', { name: 'fee', transformer: bigintTransformer })
  fee: bigint;

  @Column('bigint', { name: 'net', transformer: bigintTransformer })
  net: bigint;

  @Column('text', { name: 'currency' })
  currency: string;

  @Column('timestamptz', { name: 'booked_at' })
  bookedAt: Date;

  @Column('timestamptz', { name: 'available_at', nullable: true })
  availableAt: Date | null;

  @Column('text', { name: 'batch', nullable: true })
  batch: string | null;

  @Column('text', { name: 'payment_id', nullable: true })
  paymentId: string | null;

  @Column('smallint', { name: 'generation', nullable: true })
  generation: number | null;

  @Column('text', { name: 'bucket' })
  bucket: string;

  @Column('text', { name: 'reason', nullable: true })
  reason: string | null;

  /** What is still to be done about it; null: nothing. */
  @Column('text', { name: 'follow_up', nullable: true })
  followUp: string | null;
}
