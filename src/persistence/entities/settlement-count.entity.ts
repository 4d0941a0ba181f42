import { Column, Entity, PrimaryColumn } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';

/** How many rows of all files of a provider fell into a bucket, kept for the metrics. */
@Entity('settlement_count')
export class SettlementCount {
  @PrimaryColumn('text', { name: 'provider', primaryKeyConstraintName: 'settlement_count_pkey' })
  provider: string;

  @PrimaryColumn('text', { name: 'bucket', primaryKeyConstraintName: 'settlement_count_pkey' })
  bucket: string;

  @Column('bigint', { name: 'rows', transformer: bigintTransformer })
  rows: bigint;
}
