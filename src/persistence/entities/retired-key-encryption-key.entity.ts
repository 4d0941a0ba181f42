import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A key-encryption key that wraps no data key any more: the trigger of `data_key` refuses it. */
@Entity('retired_key_encryption_key')
export class RetiredKeyEncryptionKey {
  /** The id in the key file. */
  @PrimaryColumn('text', { name: 'kek_id', primaryKeyConstraintName: 'retired_key_encryption_key_pkey' })
  kekId: string;

  @Column('timestamptz', { name: 'retired_at', default: () => 'clock_timestamp()' })
  retiredAt: Date;
}
