import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** A person whose tokens are refused, and who neither proposes nor is approved. An insert voids their open proposals. */
@Entity('revoked_person')
@Check('revoked_person_subject_form', `subject ~ '^[A-Za-z0-9][A-Za-z0-9._:@|+-]{0,127}$'`)
@Check('revoked_person_by_one_line', `revoked_by <> '' AND revoked_by !~ E'[\\n\\r]'`)
@Check('revoked_person_reason_form', `reason ~ '^[a-z][a-z0-9_]{1,63}$'`)
export class RevokedPerson {
  /** `sub` of the issuer's tokens, for every tenant. */
  @PrimaryColumn('text', { name: 'subject', primaryKeyConstraintName: 'revoked_person_pkey' })
  subject: string;

  @Column('timestamptz', { name: 'revoked_at', default: () => 'clock_timestamp()' })
  revokedAt: Date;

  /** `operator:<name>`. */
  @Column('text', { name: 'revoked_by' })
  revokedBy: string;

  /** A code. */
  @Column('text', { name: 'reason' })
  reason: string;
}
