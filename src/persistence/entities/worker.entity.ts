import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One worker process and the end of its lease. */
@Entity('worker')
export class Worker {
  @PrimaryColumn('text', { name: 'id', primaryKeyConstraintName: 'worker_pkey' })
  id: string;

  @Column('timestamptz', { name: 'started_at', default: () => 'clock_timestamp()' })
  startedAt: Date;

  @Column('timestamptz', { name: 'lease_expires_at' })
  leaseExpiresAt: Date;
}
