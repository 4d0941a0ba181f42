import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** A payment's version and the hash of that transition, as an anchor saw them. Append-only. */
@Entity('audit_anchor_leaf')
@Unique('audit_anchor_leaf_once', ['paymentId', 'version'])
export class AuditAnchorLeaf {
  @PrimaryColumn('bigint', { name: 'anchor_no', primaryKeyConstraintName: 'audit_anchor_leaf_pkey' })
  anchorNo: string;

  /** From 1, in the order of the tree. */
  @PrimaryColumn('integer', { name: 'position', primaryKeyConstraintName: 'audit_anchor_leaf_pkey' })
  position: number;

  @Column('text', { name: 'payment_id' })
  paymentId: string;

  @Column('integer', { name: 'version' })
  version: number;

  @Column('bytea', { name: 'hash' })
  hash: Buffer;
}
