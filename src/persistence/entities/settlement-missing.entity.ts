import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A succeeded payment that no settlement line told of within the booking lag. */
@Entity('settlement_missing')
@Index('settlement_missing_by_file', ['fileId'])
export class SettlementMissing {
  @PrimaryColumn('text', { name: 'payment_id', primaryKeyConstraintName: 'settlement_missing_pkey' })
  paymentId: string;

  @Column('text', { name: 'provider' })
  provider: string;

  /** The file whose cut-off showed it. */
  @Column('bigint', { name: 'file_id' })
  fileId: string;

  @Column('timestamptz', { name: 'found_missing_at', default: () => 'clock_timestamp()' })
  foundMissingAt: Date;

  /** A later line told of it after all. */
  @Column('timestamptz', { name: 'appeared_at', nullable: true })
  appearedAt: Date | null;
}
