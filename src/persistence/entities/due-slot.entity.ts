import { Column, Entity, PrimaryColumn } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';

/** How many payments of one lane were already given a place in one due second. */
@Entity('due_slot')
export class DueSlot {
  /** Unix seconds. */
  @PrimaryColumn('bigint', {
    name: 'due_second',
    primaryKeyConstraintName: 'due_slot_pkey',
    transformer: bigintTransformer,
  })
  dueSecond: bigint;

  @PrimaryColumn('text', { name: 'lane', primaryKeyConstraintName: 'due_slot_pkey' })
  lane: string;

  @Column('integer', { name: 'taken' })
  taken: number;
}
