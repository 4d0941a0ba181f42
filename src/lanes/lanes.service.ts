import { DomainError } from '../domain/domain-error.js';
import { formatInstant, instantFromPostgres } from '../domain/instant.js';
import { recordAudit } from '../audit/audit-log.js';
import type { Sql, TenantDatabase } from '../persistence/database.js';
import { pauseLanes, readLanes, resumeLanes, type LaneRow } from './lane-state.store.js';
import type { LaneView } from './schemas/lane.schema.js';

/** The lanes of a provider, or one of them. */
export interface LanesOf {
  readonly provider: string;
  readonly account: string | null;
}

/** Who asked, as their credential says; the tenant under which the audit log keeps it. */
export interface LaneOperator {
  readonly tenantId: string;
  readonly actor: string;
}

/** Told once for each lane that a person closed or opened. Never throws. */
export type LaneNews = (
  event: 'lane_paused' | 'lane_resumed',
  of: { readonly provider: string; readonly by: string },
) => void;

/** What operators see and do of lanes. */
export class Lanes {
  /** @param allTenants reads what waits on the lanes, whosever it is: a lane serves every tenant. */
  constructor(
    private readonly db: TenantDatabase,
    private readonly allTenants: Sql,
    private readonly tell: LaneNews,
  ) {}

  /** Every lane, by provider and account. @throws faults of storage. */
  async list(): Promise<readonly LaneView[]> {
    return (await readLanes(this.allTenants, { provider: null, account: null })).map(laneView);
  }

  /**
   * Stops new calls on these lanes until they are resumed; lookups go on. @returns them as they are now.
   * @throws DomainError `not_found` when there is no such lane; faults of storage.
   * Twice: changes nothing; the first reason stays.
   */
  async pause(of: LanesOf, reason: string, who: LaneOperator): Promise<readonly LaneView[]> {
    const { tenantId, actor: by } = who;
    const paused = await this.db.ofTenant(tenantId).transaction(async (tx) => {
      const lanes = await pauseLanes(tx, of, { reason, by });
      for (const target of lanes) {
        await recordAudit(tx, { tenantId, actor: by, action: 'lane_paused', target });
      }
      return lanes;
    });
    for (const _ of paused) this.tell('lane_paused', { provider: of.provider, by });
    return this.these(of);
  }

  /** Ends the pause of these lanes. The rest as `pause`. */
  async resume(of: LanesOf, who: LaneOperator): Promise<readonly LaneView[]> {
    const { tenantId, actor: by } = who;
    const resumed = await this.db.ofTenant(tenantId).transaction(async (tx) => {
      const lanes = await resumeLanes(tx, of, by);
      for (const target of lanes) {
        await recordAudit(tx, { tenantId, actor: by, action: 'lane_resumed', target });
      }
      return lanes;
    });
    for (const _ of resumed) this.tell('lane_resumed', { provider: of.provider, by });
    return this.these(of);
  }

  private async these(of: LanesOf): Promise<readonly LaneView[]> {
    const rows = await readLanes(this.allTenants, of);
    if (rows.length === 0) throw new DomainError('not_found');
    return rows.map(laneView);
  }
}

const shownOrNull = (text: string | null): string | null =>
  text === null ? null : formatInstant(instantFromPostgres(text));

/** A hundredth of a token is nobody's business. */
const rounded = (tokens: number): number => Math.round(tokens * 100) / 100;

export function laneView(row: LaneRow): LaneView {
  const { resumed_at: resumedAt, resumed_by: resumedBy } = row;
  return {
    provider: row.provider,
    account: row.account,
    rate_per_second: row.rate,
    burst: row.burst,
    calls_in_flight: row.cap,
    tokens: rounded(row.tokens),
    paused: row.paused
      ? { reason: row.pause_reason, since: shownOrNull(row.paused_at), by: row.paused_by }
      : null,
    last_resumed:
      resumedAt === null || resumedBy === null
        ? null
        : { at: formatInstant(instantFromPostgres(resumedAt)), by: resumedBy },
    breaker: {
      state: row.breaker,
      enabled: row.breaker_enabled,
      reason: row.breaker_reason as LaneView['breaker']['reason'],
      opened_at: shownOrNull(row.opened_at),
      next_probe_at: shownOrNull(row.probe_at),
      failures_in_a_row: row.failures_in_a_row,
      recent_failures: row.recent_failures,
    },
    waiting_until: shownOrNull(row.wait_until),
    is_probing: row.is_probing,
    backlog: row.backlog,
    oldest_due_at: shownOrNull(row.oldest_due_at),
    backlog_ends_at: shownOrNull(row.backlog_ends_at),
  };
}
