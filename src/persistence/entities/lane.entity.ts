import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** The rate budget of one account at one provider: a token bucket and a switch. */
@Entity('lane')
@Unique('lane_provider_account', ['provider', 'account'])
@Check('lane_rate_positive', 'rate > 0')
@Check('lane_burst_at_least_one', 'burst >= 1')
@Check('lane_cap_positive', 'cap > 0')
export class Lane {
  @PrimaryColumn('text', { name: 'lane', primaryKeyConstraintName: 'lane_pkey' })
  lane: string;

  @Column('text', { name: 'provider' })
  provider: string;

  @Column('text', { name: 'account' })
  account: string;

  /** Tokens per second. */
  @Column('double precision', { name: 'rate' })
  rate: number;

  @Column('double precision', { name: 'burst' })
  burst: number;

  @Column('double precision', { name: 'tokens' })
  tokens: number;

  @Column('timestamptz', { name: 'refilled_at', default: () => 'clock_timestamp()' })
  refilledAt: Date;

  /** Calls in flight of one worker. */
  @Column('integer', { name: 'cap' })
  cap: number;

  @Column('boolean', { name: 'paused', default: false })
  paused: boolean;

  @Column('text', { name: 'pause_reason', nullable: true })
  pauseReason: string | null;

  @Column('timestamptz', { name: 'paused_at', nullable: true })
  pausedAt: Date | null;
}
