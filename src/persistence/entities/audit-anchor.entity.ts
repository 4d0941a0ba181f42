import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A signed root over the payments that changed since the anchor before. Append-only. */
@Entity('audit_anchor')
@Check('audit_anchor_no_positive', 'no > 0')
@Check('audit_anchor_leaves_counted', 'leaves >= 0')
@Check('audit_anchor_root_length', 'octet_length(root) = 32')
@Check('audit_anchor_previous_length', 'octet_length(previous) = 32')
@Check('audit_anchor_digest_length', 'octet_length(digest) = 32')
@Index('audit_anchor_by_time', ['at'])
export class AuditAnchor {
  @PrimaryColumn('bigint', { name: 'no', primaryKeyConstraintName: 'audit_anchor_pkey' })
  no: string;

  @Column('timestamptz', { name: 'at' })
  at: Date;

  /** It covers transactions below this one. */
  @Column('bigint', { name: 'cut' })
  cut: string;

  @Column('integer', { name: 'leaves' })
  leaves: number;

  @Column('bytea', { name: 'root' })
  root: Buffer;

  /** Digest of the anchor before. */
  @Column('bytea', { name: 'previous' })
  previous: Buffer;

  @Column('bytea', { name: 'digest' })
  digest: Buffer;
}

/** One key's signature of an anchor. */
@Entity('audit_anchor_signature')
@Check('audit_anchor_signature_length', 'octet_length(signature) = 64')
export class AuditAnchorSignature {
  @PrimaryColumn('bigint', { name: 'anchor_no', primaryKeyConstraintName: 'audit_anchor_signature_pkey' })
  anchorNo: string;

  @PrimaryColumn('text', { name: 'key_id', primaryKeyConstraintName: 'audit_anchor_signature_pkey' })
  keyId: string;

  @Column('bytea', { name: 'signature' })
  signature: Buffer;

  @Column('timestamptz', { name: 'at', default: () => 'clock_timestamp()' })
  at: Date;
}
