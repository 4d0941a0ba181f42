import { CALL_DEADLINE_MS, CLASS_RULES } from '../domain/submission-policy.js';
import type { Database } from '../persistence/database.js';
import type { PaymentProvider, ProviderDescriptor } from '../providers/payment-provider.js';
import {
  fileControl,
  findKnownPayment,
  PROOF_PATHS,
  proveAbsence,
  spacingMs,
  type ProofPath,
} from './absence.store.js';
import { fileLookup } from './inquiry.store.js';
import { readOpenOutcome, type OpenOutcome } from './open-outcome.store.js';
import type { ProviderLookup } from './provider-lookup.js';
import type { SubmissionEvents } from './submission-events.js';
import type { WorkerLease } from './worker-lease.js';

/** A round of a proof shares the time of one inquiry: 30 s for all its lookups and statements. */
const CONTROL_DEADLINE_MS = 3_000;
const SCAN_DEADLINE_MS = 8_000;

/**
 * Gathers what the absence proof needs beside the ladder's own lookups, and asks the statement whether
 * it is complete: by each way that must be silent, a known object is looked for and then the payment.
 */
export class AbsenceProver {
  constructor(
    private readonly sql: Database,
    private readonly lease: WorkerLease,
    private readonly lookups: ProviderLookup,
    private readonly events: SubmissionEvents,
    private readonly ladderDivisor: number,
    private readonly deadlineMs = CALL_DEADLINE_MS,
  ) {}

  /**
   * One round for an unknown payment that the provider just called absent and that may not be sent
   * again. A provider that cannot prove absence is not asked for more.
   * @returns true when the payment is failed now. @throws faults of storage. Twice: another round.
   */
  async prove(provider: PaymentProvider, payment: OpenOutcome): Promise<boolean> {
    const descriptor = provider.capabilities();
    if (payment.capabilityClass === null || !CLASS_RULES[payment.capabilityClass].provesAbsence) return false;
    if (!canProve(descriptor)) return false;
    const known = await this.knownPayment(provider, payment);
    if (!known) return false;
    for (const path of PROOF_PATHS) {
      if (!(await this.round(provider, payment, known, path))) return false;
    }
    const actor = `worker:${this.lease.id}`;
    const proven = await proveAbsence(this.sql, payment, actor, {
      landedAfterMs: this.deadlineMs + descriptor.maxInFlightMs,
      spacingMs: spacingMs(this.ladderDivisor),
      isStrong: descriptor.lookup.consistency === 'strong',
      target: provider,
    });
    if (proven) this.events.moved({ from: 'unknown', to: 'failed', cause: 'record-outcome' });
    return proven;
  }

  /** @returns false when this way was not silent about the payment, or blind to the known object. */
  private async round(
    provider: PaymentProvider,
    payment: OpenOutcome,
    known: OpenOutcome,
    path: ProofPath,
  ): Promise<boolean> {
    const control = await this.lookups.ask(
      provider,
      { ...known, providerRef: null, commitTarget: null },
      { by: path, deadlineMs: CONTROL_DEADLINE_MS },
    );
    await fileControl(this.sql, payment, path, control.kind === 'found');
    if (control.kind !== 'found') return false;
    const answer = await this.lookups.ask(provider, payment, { by: path, deadlineMs: SCAN_DEADLINE_MS });
    await fileLookup(this.sql, payment, answer);
    return answer.kind === 'absent' && answer.by.includes(path);
  }

  private async knownPayment(provider: PaymentProvider, payment: OpenOutcome): Promise<OpenOutcome | null> {
    const id = await findKnownPayment(this.sql, payment, provider);
    return id === null ? null : readOpenOutcome(this.sql, id);
  }
}

function canProve({ lookup }: ProviderDescriptor): boolean {
  return lookup.consistency === 'strong' && PROOF_PATHS.every((path) => lookup.by.includes(path));
}
