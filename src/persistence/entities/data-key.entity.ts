import { Check, Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';

/** The key that seals what one tenant stores in one month; itself sealed by a key-encryption key. */
@Entity('data_key')
@Check('data_key_id_form', `id ~ '^dk_[0-9a-f-]{36}$'`)
@Check('data_key_month_form', `month ~ '^[0-9]{4}-[0-9]{2}$'`)
@Unique('data_key_month_unique', ['tenantId', 'month'])
@Index('data_key_by_kek', ['kekId', 'id'])
export class DataKey {
  @PrimaryColumn('text', { name: 'id', primaryKeyConstraintName: 'data_key_pkey' })
  id: string;

  /** Or `webhook:<provider>/<account>`, for what a provider tells before its tenant is known. */
  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  /** `YYYY-MM`, UTC. */
  @Column('text', { name: 'month' })
  month: string;

  /** Ciphertext of 32 bytes. */
  @Column('bytea', { name: 'wrapped' })
  wrapped: Buffer;

  @Column('text', { name: 'kek_id' })
  kekId: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt: Date;
}
