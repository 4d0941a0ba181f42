import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A fact that all processes share, such as the recovery hold. */
@Entity('setting')
export class Setting {
  @PrimaryColumn('text', { name: 'name', primaryKeyConstraintName: 'setting_pkey' })
  name: string;

  @Column('text', { name: 'value' })
  value: string;

  @Column('timestamptz', { name: 'updated_at', default: () => 'clock_timestamp()' })
  updatedAt: Date;
}
