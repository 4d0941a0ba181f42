import { DomainError } from '../domain/domain-error.js';
import { instantToPostgres } from '../domain/instant.js';
import { cancelTotal, gateLostTotal, transitionsTotal, type CancelResult } from '../metrics/metrics.js';
import type { OutboxNudge } from '../outbox/outbox-nudge.js';
import { OutcomeUnknown, StorageUnavailable } from '../persistence/database-errors.js';
import type { TenantDatabase } from '../persistence/database.js';
import { move, type MoveRequest, type MoveResult } from './gate.js';
import { standing, type Command } from './lifecycle-refusal.js';
import { findLastCause, isRecoveryHoldOn, judgeTimes, type JudgedTimes } from './payment-lifecycle.store.js';
import { findPayment, type PaymentRow } from './payment.store.js';
import { escalateToReview } from './review-moves.js';
import type { ReschedulePaymentCommand } from './schemas/reschedule-payment.schema.js';

/** Who asks for which payment. */
export interface CommandTarget {
  readonly tenantId: string;
  readonly paymentId: string;
  readonly actor: string;
  /** The version the caller saw; null when it does not care. */
  readonly expectedVersion: number | null;
}

/** A command meets at most this many others on one payment before it gives up. */
const MAX_TRIES = 3;

/**
 * The moves that clients and operators ask for: cancel (T5), reschedule (T2), hold (T3), release
 * (T4, or T6 past the deadline), escalate (T16). Each is one `move`; who loses reads the payment and answers by the
 * state found. Every method
 * @returns the payment as it is after the command, also when an earlier call had done it already;
 * @throws DomainError by the answer table (`not_found`, `version_mismatch`, `submission_started`,
 * `payment_final`, `not_applicable`, `recovery_hold`), StorageUnavailable when nothing was changed,
 * OutcomeUnknown when the change may be stored: repeat the command.
 */
export class PaymentLifecycle {
  constructor(
    private readonly db: TenantDatabase,
    private readonly outbox: OutboxNudge,
    private readonly limits: { readonly horizonDays: number },
  ) {}

  /** Stops a payment before submission start. Twice: the second call finds it cancelled. */
  async cancel(target: CommandTarget): Promise<PaymentRow> {
    try {
      const { row, moved } = await this.command('cancel', target, { rule: 'T5', announce: 'cancel' });
      const found = row.state === 'expired' ? 'expired' : 'already_cancelled';
      cancelTotal.add({ result: moved ? 'cancelled' : found });
      return row;
    } catch (error) {
      if (error instanceof DomainError && isCancelResult(error.code)) cancelTotal.add({ result: error.code });
      throw error;
    }
  }

  /** Keeps a payment from running until it is released. Twice: the second call finds it held. */
  async hold(target: CommandTarget): Promise<PaymentRow> {
    return (await this.command('hold', target, { rule: 'T3', cause: 'hold', announce: 'wake' })).row;
  }

  /**
   * Lets a held payment run again. Past its deadline it expires instead (T6) and the answer is
   * `payment_final`, as for every payment found expired. Twice: the second call finds it released.
   */
  async release(target: CommandTarget): Promise<PaymentRow> {
    return (await this.command('release', target, { rule: 'T4', announce: 'wake' })).row;
  }

  /**
   * Hands an open outcome (`submitted`, `unknown`) to people: a case is opened. Twice: the second call
   * finds it in review, which is `not_applicable`.
   */
  async escalate(target: CommandTarget): Promise<PaymentRow> {
    return (await this.command('escalate', target, { rule: 'T16', announce: 'wake' })).row;
  }

  /**
   * Gives a scheduled payment new times; `expectedVersion` is not optional here. Also throws
   * DomainError `execute_at_in_past`, `beyond_horizon`, `not_after_before_execute_at`.
   * Twice: the second call has a stale version.
   */
  async reschedule(
    target: CommandTarget & { readonly expectedVersion: number },
    times: ReschedulePaymentCommand,
  ): Promise<PaymentRow> {
    const row = await reading(() => this.find(target));
    if (!row) throw new DomainError('not_found');
    const stand = standing('reschedule', row, false);
    if (stand instanceof DomainError) throw stand;
    refuseStale(target, row);
    // The version is the one seen, so the times read here are the times that the gate replaces.
    const judged = await reading(() =>
      judgeTimes(this.db.ofTenant(target.tenantId), {
        executeAt: times.executeAt === 'now' ? null : instantToPostgres(times.executeAt),
        notAfter: times.notAfter === undefined ? null : instantToPostgres(times.notAfter),
        before: { executeAt: row.execute_at, notAfter: row.not_after },
        horizonDays: this.limits.horizonDays,
      }),
    );
    refuseTimes(judged.verdict);
    const { row: rescheduled } = await this.command('reschedule', target, {
      rule: 'T2',
      newExecuteAt: judged.execute_at,
      newNotAfter: judged.not_after,
      announce: 'wake',
    });
    return rescheduled;
  }

  private async command(
    command: Command,
    target: CommandTarget,
    rule: Pick<MoveRequest, 'rule' | 'cause' | 'announce' | 'newExecuteAt' | 'newNotAfter'>,
  ): Promise<{ readonly row: PaymentRow; readonly moved: boolean }> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const result = await this.tryMove(target, rule);
      if (result.kind === 'missing') throw new DomainError('not_found');
      if (result.kind === 'moved') {
        this.outbox.nudge();
        transitionsTotal.add({ from: result.from, to: result.to, cause: command });
        return { row: await this.readAfterMove(target), moved: true };
      }
      gateLostTotal.add({ cause: command });
      const found = await this.standingOf(command, target);
      if (found !== 'again') return { row: found, moved: false };
    }
    throw new DomainError('overloaded');
  }

  private tryMove(
    { tenantId: tenant, paymentId, actor, expectedVersion }: CommandTarget,
    rule: Pick<MoveRequest, 'rule' | 'cause' | 'announce' | 'newExecuteAt' | 'newNotAfter'>,
  ): Promise<MoveResult> {
    const request = { tenant, paymentId, actor, expectedVersion };
    const sql = this.db.ofTenant(tenant);
    if (rule.rule !== 'T16') return move(sql, { ...rule, ...request });
    return sql.transaction((tx) => escalateToReview(tx, { ...request, reason: 'operator' }));
  }

  /** The command lost: answers by the payment as it is now, or says that it is worth another try. */
  private async standingOf(command: Command, target: CommandTarget): Promise<PaymentRow | 'again'> {
    const row = await reading(() => this.find(target));
    if (!row) throw new DomainError('not_found');
    const wasRelease = command === 'release' && (await this.lastCauseWasRelease(row));
    const stand = standing(command, row, wasRelease);
    if (stand instanceof DomainError) throw stand;
    if (stand === 'repeat') return row;
    refuseStale(target, row);
    await this.refuseGuard(command, target, row);
    return 'again';
  }

  private async lastCauseWasRelease(row: PaymentRow): Promise<boolean> {
    if (row.state !== 'scheduled') return false;
    const last = await reading(() => findLastCause(this.db.ofTenant(row.tenant_id), row.tenant_id, row.id));
    return last?.version === row.version && last.cause === 'release';
  }

  /** State and version fit, so the rule's guard refused, or another command came between. */
  private async refuseGuard(command: Command, target: CommandTarget, row: PaymentRow): Promise<void> {
    // The gate judged the new time after us: it passed meanwhile.
    if (command === 'reschedule') throw new DomainError('execute_at_in_past');
    if (command === 'hold' || command === 'escalate') return;
    if (command === 'release') await this.expire(target);
    if (await reading(() => isRecoveryHoldOn(this.db.ofTenant(target.tenantId)))) {
      throw new DomainError('recovery_hold', { state: row.state, version: row.version });
    }
  }

  /** T6 when the deadline has passed; otherwise nothing. */
  private async expire(target: CommandTarget): Promise<void> {
    const result = await move(this.db.ofTenant(target.tenantId), {
      rule: 'T6',
      from: ['held'],
      tenant: target.tenantId,
      paymentId: target.paymentId,
      actor: target.actor,
      announce: 'wake',
    });
    if (result.kind !== 'moved') return;
    this.outbox.nudge();
    transitionsTotal.add({ from: result.from, to: result.to, cause: 'expire' });
    throw new DomainError('payment_final', { state: result.to, version: result.version });
  }

  private find({ tenantId, paymentId }: CommandTarget): Promise<PaymentRow | null> {
    return findPayment(this.db.ofTenant(tenantId), tenantId, paymentId);
  }

  /** The move is committed: a read that fails now must not be told as "nothing happened". */
  private async readAfterMove(target: CommandTarget): Promise<PaymentRow> {
    try {
      const row = await this.find(target);
      if (row) return row;
    } catch (error) {
      throw new OutcomeUnknown('the payment was moved and could not be read again', { cause: error });
    }
    throw new Error('a moved payment is there');
  }
}

const REFUSED_CANCELS = [
  'submission_started',
  'payment_final',
  'version_mismatch',
  'recovery_hold',
  'not_found',
] as const satisfies readonly CancelResult[];

function isCancelResult(code: string): code is (typeof REFUSED_CANCELS)[number] {
  return (REFUSED_CANCELS as readonly string[]).includes(code);
}

function refuseStale(target: CommandTarget, row: PaymentRow): void {
  if (target.expectedVersion === null || target.expectedVersion === row.version) return;
  throw new DomainError('version_mismatch', { state: row.state, version: row.version });
}

function refuseTimes(verdict: JudgedTimes['verdict']): void {
  if (verdict === 'in_past') throw new DomainError('execute_at_in_past');
  if (verdict === 'beyond_horizon') throw new DomainError('beyond_horizon');
  if (verdict === 'not_after_too_early') throw new DomainError('not_after_before_execute_at');
}

/** A read whose answer was lost changed nothing, so it is only unavailable. */
export async function reading<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof OutcomeUnknown)) throw error;
    throw new StorageUnavailable('the answer to a read was lost', { cause: error });
  }
}
