import { recordAudit, type AuditEntry } from '../audit/audit-log.js';
import { DomainError } from '../domain/domain-error.js';
import { isFinal, type PaymentState } from '../domain/payment-state.js';
import { transitionsTotal } from '../metrics/metrics.js';
import type { OutboxNudge } from '../outbox/outbox-nudge.js';
import { reading } from '../payments/payment-lifecycle.service.js';
import { resolveReview } from '../payments/review-moves.js';
import type { Sql, TenantDatabase } from '../persistence/database.js';
import { newUuid } from '../platform/ids.js';
import { NewGenerations } from './new-generation.js';
import { judgeProposal, type Proposal, type ResolutionOutcome } from './resolution.js';
import {
  approveResolution,
  fileDecision,
  findOpenResolution,
  findResolution,
  insertResolution,
  lockPayment,
  readFacts,
  voidResolution,
  type LockedPayment,
  type ResolutionRow,
  type VoidReason,
} from './resolution.store.js';
import { holdPeople, isRevoked } from './revoked-people.store.js';

/** A person who proposes or approves. */
export interface Decider {
  readonly tenantId: string;
  /** `person:<subject>`: the same for every credential of the person. */
  readonly actor: string;
  readonly hasSecondFactor: boolean;
}

const STATE_AFTER = {
  succeeded: 'succeeded',
  failed: 'failed',
  submitted: 'submitted',
  resend: 'submitting',
  resend_new_generation: 'submitting',
} as const satisfies Readonly<Record<ResolutionOutcome, PaymentState>>;

/** In the words of the provider port. */
const STATUS_OF = {
  succeeded: 'succeeded',
  failed: 'failed',
  submitted: 'pending',
  resend: null,
  resend_new_generation: null,
} as const;

/** What ends a proposal is committed before its approver hears of it. */
type Approval =
  | { readonly kind: 'moved'; readonly to: PaymentState }
  | { readonly kind: 'repeated' }
  | { readonly kind: 'refused'; readonly error: DomainError };

/** Two people decide about a payment in review: one proposes, another approves (T18, T19). */
export class Resolutions {
  constructor(
    private readonly db: TenantDatabase,
    private readonly outbox: OutboxNudge,
    private readonly generations: NewGenerations,
  ) {}

  /**
   * Proposes an outcome for the version that the person saw. It takes the place of an open proposal.
   * @returns the open proposal. Twice, the same content by the same person: the same proposal.
   * @throws DomainError `not_found`, `not_applicable` or `payment_final` outside review,
   * `version_mismatch`, `resolution_not_allowed` with its reason, `unauthenticated` when the person was
   * revoked since the token was checked; StorageUnavailable, OutcomeUnknown.
   */
  async propose(
    who: Decider,
    of: { readonly paymentId: string; readonly version: number; readonly proposal: Proposal },
  ): Promise<ResolutionRow> {
    return this.db.ofTenant(who.tenantId).transaction(async (tx) => {
      await holdPeople(tx);
      const payment = await lockInReview(tx, who.tenantId, of.paymentId);
      if (payment.version !== of.version) throw mismatch(payment);
      await this.judge(tx, payment, of.proposal);
      const open = await findOpenResolution(tx, payment.id);
      if (open) {
        if (isSame(open, of.proposal, who.actor)) return open;
        await voidResolution(tx, open.id, open.is_expired ? 'expired' : 'superseded');
      }
      const id = newUuid();
      const proposed = { id, paymentId: payment.id, proposal: of.proposal, actor: who.actor };
      if (!(await insertResolution(tx, proposed))) throw new DomainError('unauthenticated');
      await recordAudit(tx, {
        ...decisionOf(payment, id),
        action: 'resolution_proposed',
        actor: who.actor,
        code: of.proposal.reasonCode,
      });
      const row = await findResolution(tx, payment.id, id);
      if (!row) throw new Error(`resolution ${id} was inserted and is not there`);
      return row;
    });
  }

  /**
   * Approves another person's proposal and moves the payment by it, in one transaction.
   * Twice by the same person: nothing more happens.
   * @throws DomainError `second_factor_required`, `not_found`, `second_person_required`,
   * `not_applicable` or `payment_final` when the payment left review, `version_mismatch`,
   * `proposal_void` (older than 24 h, replaced, what is known changed, or its proposer was revoked),
   * `unauthenticated` when the approver was revoked since the token was checked, `resolution_not_allowed`
   * when it became impossible; StorageUnavailable, OutcomeUnknown: repeat the call.
   */
  async approve(
    who: Decider,
    of: {
      readonly paymentId: string;
      readonly resolutionId: string;
      readonly expectedVersion: number | null;
    },
  ): Promise<void> {
    if (!who.hasSecondFactor) throw new DomainError('second_factor_required');
    const db = this.db.ofTenant(who.tenantId);
    await reading(() => this.generations.warm(db, who.tenantId, of.paymentId));
    const approval = await db.transaction((tx) => this.decide(tx, who, of));
    if (approval.kind === 'refused') throw approval.error;
    if (approval.kind === 'repeated') return;
    this.outbox.nudge();
    transitionsTotal.add({ from: 'needs_review', to: approval.to, cause: 'resolve' });
  }

  private async decide(
    tx: Sql,
    who: Decider,
    of: {
      readonly paymentId: string;
      readonly resolutionId: string;
      readonly expectedVersion: number | null;
    },
  ): Promise<Approval> {
    await holdPeople(tx);
    const payment = await lockPayment(tx, who.tenantId, of.paymentId);
    if (!payment) throw new DomainError('not_found');
    const resolution = await findResolution(tx, payment.id, of.resolutionId);
    if (!resolution) throw new DomainError('not_found');
    if (resolution.proposed_by === who.actor) throw withHead('second_person_required', payment);
    if (resolution.approved_by === who.actor) return { kind: 'repeated' };
    if (payment.state !== 'needs_review') throw outsideReview(payment);
    const { expectedVersion } = of;
    if (expectedVersion !== null && expectedVersion !== payment.version) throw mismatch(payment);
    if (resolution.voided_at !== null) throw withHead('proposal_void', payment);
    if (resolution.payment_version !== payment.version) {
      return end(tx, resolution, 'payment_moved', mismatch(payment));
    }
    if (resolution.is_expired) return end(tx, resolution, 'expired', withHead('proposal_void', payment));
    if (!resolution.is_current) {
      return end(tx, resolution, 'evidence_changed', withHead('proposal_void', payment));
    }
    await this.judge(tx, payment, proposalOf(resolution));
    return this.carryOut(tx, payment, resolution, who.actor);
  }

  private async carryOut(
    tx: Sql,
    payment: LockedPayment,
    resolution: ResolutionRow,
    actor: string,
  ): Promise<Approval> {
    // Time went on since it was read: the statement judges age, evidence and people for itself.
    if (!(await approveResolution(tx, resolution.id, actor))) {
      if (await isRevoked(tx, actor)) throw new DomainError('unauthenticated');
      throw withHead('proposal_void', payment);
    }
    const { outcome, reason_code: reasonCode } = resolution;
    if (outcome === 'resend_new_generation') await this.generations.open(tx, payment, resolution);
    const { generation } = payment;
    await fileDecision(tx, { paymentId: payment.id, generation, reasonCode, status: STATUS_OF[outcome] });
    const to = STATE_AFTER[outcome];
    const result = await resolveReview(tx, {
      tenant: payment.tenant_id,
      paymentId: payment.id,
      resolutionId: resolution.id,
      to,
      outcome,
      reasonCode,
      proposedBy: resolution.proposed_by,
      approvedBy: actor,
      version: payment.version,
    });
    // The head row is locked, so only the guards can refuse: a key or a deadline that just ended.
    if (result.kind !== 'moved') throw notAllowed(payment, 'guard');
    await recordAudit(tx, {
      ...decisionOf(payment, resolution.id),
      action: 'resolution_approved',
      actor,
      code: reasonCode,
    });
    return { kind: 'moved', to };
  }

  private async judge(tx: Sql, payment: LockedPayment, proposal: Proposal): Promise<void> {
    const evidence = await readFacts(tx, payment.id);
    // Other outcomes are open also when the release does not know the provider any more.
    const needsProvider = proposal.outcome === 'resend_new_generation';
    const maxInFlightMs = needsProvider ? this.generations.maxInFlightMs(payment.provider) : 0;
    const fault = judgeProposal(proposal, { ...payment, evidence }, maxInFlightMs);
    if (fault !== null) throw notAllowed(payment, fault);
  }
}

/** What the audit log says of any decision: which proposal, about which payment and how much money. */
function decisionOf(
  payment: LockedPayment,
  resolutionId: string,
): Pick<AuditEntry, 'tenantId' | 'target' | 'detail' | 'money'> {
  return {
    tenantId: payment.tenant_id,
    target: payment.id,
    detail: { resolution: resolutionId, version: payment.version },
    money: { amountMinor: payment.amount, currency: payment.currency },
  };
}

async function lockInReview(tx: Sql, tenantId: string, paymentId: string): Promise<LockedPayment> {
  const payment = await lockPayment(tx, tenantId, paymentId);
  if (!payment) throw new DomainError('not_found');
  if (payment.state !== 'needs_review') throw outsideReview(payment);
  return payment;
}

async function end(
  tx: Sql,
  resolution: ResolutionRow,
  reason: VoidReason,
  error: DomainError,
): Promise<Approval> {
  await voidResolution(tx, resolution.id, reason);
  return { kind: 'refused', error };
}

type Head = Pick<LockedPayment, 'state' | 'version'>;

function withHead(code: 'second_person_required' | 'proposal_void', head: Head): DomainError {
  return new DomainError(code, { state: head.state, version: head.version });
}

function outsideReview({ state, version }: Head): DomainError {
  return new DomainError(isFinal(state) ? 'payment_final' : 'not_applicable', { state, version });
}

function mismatch({ state, version }: Head): DomainError {
  return new DomainError('version_mismatch', { state, version });
}

function notAllowed({ state, version }: Head, reason: string): DomainError {
  return new DomainError('resolution_not_allowed', { state, version, extra: { reason } });
}

function proposalOf(row: ResolutionRow): Proposal {
  const { outcome, reason_code: reasonCode, proof_kind: kind, proof_statement: statement } = row;
  const proof = kind === null || statement === null ? null : { kind, statement };
  return { outcome, reasonCode, evidenceIds: row.evidence_ids.map(BigInt), proof };
}

/** A repeat whose first answer was lost must not replace what somebody may be approving now. */
function isSame(row: ResolutionRow, proposal: Proposal, actor: string): boolean {
  if (row.proposed_by !== actor || row.is_expired || !row.is_current) return false;
  const text = (of: Proposal): string =>
    JSON.stringify([
      of.outcome,
      of.reasonCode,
      of.evidenceIds.map(String),
      of.proof?.kind,
      of.proof?.statement,
    ]);
  return text(proposalOf(row)) === text(proposal);
}
