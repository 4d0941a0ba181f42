import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** The rate budget of one account at one provider: a token bucket, a switch and a breaker. */
@Entity('lane')
@Unique('lane_provider_account', ['provider', 'account'])
@Check('lane_rate_positive', 'rate > 0')
@Check('lane_burst_at_least_one', 'burst >= 1')
@Check('lane_cap_positive', 'cap > 0')
@Check('lane_breaker_known', `breaker IN ('closed', 'open', 'half_open')`)
@Check(
  'lane_breaker_says_since',
  `(breaker = 'closed') = (opened_at IS NULL) AND (breaker = 'closed') = (probe_at IS NULL)
   AND (breaker = 'closed') = (breaker_reason IS NULL)`,
)
@Check('lane_recent_form', `recent ~ '^[01]{0,20}$'`)
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

  /** The credential that paused it, or `worker:<id>`. */
  @Column('text', { name: 'paused_by', nullable: true })
  pausedBy: string | null;

  @Column('timestamptz', { name: 'resumed_at', nullable: true })
  resumedAt: Date | null;

  @Column('text', { name: 'resumed_by', nullable: true })
  resumedBy: string | null;

  /** The provider has had enough (429): nothing goes before, and then one probe. Null: it has not. */
  @Column('timestamptz', { name: 'wait_until', nullable: true })
  waitUntil: Date | null;

  /** How often in a row the provider had enough. */
  @Column('smallint', { name: 'throttle_step', default: 0 })
  throttleStep: number;

  /** False: calls without an answer never open the breaker. */
  @Column('boolean', { name: 'breaker_enabled', default: true })
  breakerEnabled: boolean;

  @Column('text', { name: 'breaker', default: 'closed' })
  breaker: string;

  @Column('text', { name: 'breaker_reason', nullable: true })
  breakerReason: string | null;

  /** Up to the last 20 ended calls since the first failure among them, newest last: 1 failed, 0 answered. */
  @Column('text', { name: 'recent', default: '' })
  recent: string;

  @Column('timestamptz', { name: 'opened_at', nullable: true })
  openedAt: Date | null;

  /** When the open breaker lets a probe through. */
  @Column('timestamptz', { name: 'probe_at', nullable: true })
  probeAt: Date | null;

  /** Probes of the open breaker that failed, and one. */
  @Column('smallint', { name: 'probe_step', default: 0 })
  probeStep: number;

  /** The attempt that is the lane's probe; the next one waits until it is closed, or until `probe_until`. */
  @Column('text', { name: 'probe_payment_id', nullable: true })
  probePaymentId: string | null;

  @Column('smallint', { name: 'probe_generation', nullable: true })
  probeGeneration: number | null;

  @Column('smallint', { name: 'probe_no', nullable: true })
  probeNo: number | null;

  @Column('timestamptz', { name: 'probe_until', nullable: true })
  probeUntil: Date | null;
}
