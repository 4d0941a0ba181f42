import { isFinal } from '../domain/payment-state.js';
import type { CancelAnswer, FinalState, LookAnswer } from '../../workflows/contract.js';
import { move } from '../payments/gate.js';
import type { Sql } from '../persistence/database.js';
import type { ArmedPayments } from './armed-payments.js';
import { hintOf, type ArmingService } from './arming.service.js';
import { UnknownPayment } from './begin-submission.service.js';
import type { SubmissionEvents } from './submission-events.js';

/** What the workflow asks beside the pair: a cancel that came as a signal, and one look at the row. */
export class PaymentCommandsService {
  constructor(
    private readonly sql: Sql,
    private readonly armed: ArmedPayments,
    private readonly arming: ArmingService,
    private readonly events: SubmissionEvents,
  ) {}

  /**
   * Cancels by the same gate as the API (T5): who signals has no authority, the row decides.
   * @returns stopped with the final state found; refused when submission had started.
   * @throws UnknownPayment; faults of storage. Twice: the second finds `cancelled`.
   */
  async cancelPayment(input: { readonly paymentId: string }): Promise<CancelAnswer> {
    const result = await move(this.sql, {
      rule: 'T5',
      tenant: null,
      paymentId: input.paymentId,
      actor: 'temporal',
      announce: null,
    });
    if (result.kind === 'missing') throw new UnknownPayment(input.paymentId);
    if (result.kind === 'moved') this.events.moved({ from: result.from, to: result.to, cause: 'cancel' });
    const state = result.kind === 'moved' ? result.to : result.state;
    if (!isFinal(state)) {
      this.events.gateLost('cancel');
      return { kind: 'refused' };
    }
    this.armed.endAll(input.paymentId, state as FinalState);
    return { kind: 'stopped', state: state as FinalState };
  }

  /** One read of the row. @throws UnknownPayment; faults of storage. Twice: reads again. */
  async look(input: { readonly paymentId: string }): Promise<LookAnswer> {
    const standing = await this.arming.standing(input.paymentId);
    if (!standing) throw new UnknownPayment(input.paymentId);
    switch (standing.state) {
      case 'scheduled':
        return { kind: 'scheduled', ...hintOf(standing) };
      case 'held':
        return { kind: 'held', version: standing.version };
      case 'submitting':
        return { kind: 'submitting' };
      case 'submitted':
      case 'unknown':
        return { kind: 'outcome_open', state: standing.state };
      case 'needs_review':
        return { kind: 'review' };
      case 'cancelled':
      case 'expired':
      case 'failed':
      case 'returned':
      case 'succeeded':
        this.armed.endAll(standing.id, standing.state);
        return { kind: 'stopped', state: standing.state };
    }
  }
}
