import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** A row of a settlement file that could not become a line: unreadable, or a repetition of one. */
@Entity('settlement_fault')
@Check('settlement_fault_bucket', `bucket IN ('unreadable', 'duplicate')`)
export class SettlementFault {
  @PrimaryColumn('bigint', { name: 'file_id', primaryKeyConstraintName: 'settlement_fault_pkey' })
  fileId: string;

  @PrimaryColumn('integer', { name: 'row_no', primaryKeyConstraintName: 'settlement_fault_pkey' })
  rowNo: number;

  @Column('text', { name: 'bucket' })
  bucket: string;

  @Column('text', { name: 'reason' })
  reason: string;

  @Column('text', { name: 'txn_id', nullable: true })
  txnId: string | null;
}
