import { Check, Column, Entity, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';

/** One settlement file, known by its bytes. `finishedAt` null: its import was not finished. */
@Entity('settlement_file')
@Unique('settlement_file_unique', ['provider', 'sha256'])
@Check('settlement_file_sha256_length', 'octet_length(sha256) = 32')
@Check('settlement_file_format', `format IN ('csv', 'camt053')`)
export class SettlementFile {
  @PrimaryGeneratedColumn('identity', {
    name: 'id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'settlement_file_pkey',
  })
  id: string;

  @Column('text', { name: 'provider' })
  provider: string;

  @Column('bytea', { name: 'sha256' })
  sha256: Buffer;

  @Column('text', { name: 'format' })
  format: string;

  @Column('bigint', { name: 'size_bytes', transformer: bigintTransformer })
  sizeBytes: bigint;

  /** Rows stored or reported so far; an interrupted import goes on after them. */
  @Column('integer', { name: 'rows_done', default: 0 })
  rowsDone: number;

  /** Rows that an earlier file had brought already. */
  @Column('integer', { name: 'rows_known', default: 0 })
  rowsKnown: number;

  @Column('timestamptz', { name: 'first_booked_at', nullable: true })
  firstBookedAt: Date | null;

  /** The cut-off of the report. */
  @Column('timestamptz', { name: 'last_booked_at', nullable: true })
  lastBookedAt: Date | null;

  @Column('timestamptz', { name: 'started_at', default: () => 'clock_timestamp()' })
  startedAt: Date;

  @Column('timestamptz', { name: 'finished_at', nullable: true })
  finishedAt: Date | null;
}
