import { CALL_DEADLINE_MS } from '../domain/submission-policy.js';
import { monotonicMs } from '../platform/clock.js';
import { heldAgainst } from '../providers/held-against.js';
import type {
  LookupAnswer,
  LookupRefs,
  PaymentProvider,
  ProviderTarget,
} from '../providers/payment-provider.js';
import type { SubmissionCipher } from './arming.service.js';
import type { OpenOutcome } from './open-outcome.store.js';
import type { SubmissionEvents } from './submission-events.js';

export interface LookupHow {
  readonly by: LookupRefs['by'];
  readonly deadlineMs?: number;
}

/** Asks a provider about one payment and holds its answer against the instruction (rule 9). */
export class ProviderLookup {
  constructor(
    private readonly cipher: SubmissionCipher,
    private readonly events: SubmissionEvents,
  ) {}

  /**
   * One lookup of the payment's newest generation. Never throws.
   * @returns found only when amount, currency and destination are those of the instruction; payment
   * id and generation are what the provider was asked for. Never absent of what was sent elsewhere.
   */
  async ask(provider: PaymentProvider, payment: OpenOutcome, how: LookupHow): Promise<LookupAnswer> {
    const { generation, providerKey } = payment;
    if (generation === null || providerKey === null) return { kind: 'cannot_tell', code: 'never_sent' };
    let destination: string;
    try {
      destination = await this.cipher.openDestination({ ...payment, tenant_id: payment.tenantId });
    } catch (error) {
      // A hit could not be compared. The ladder goes on, so that people hear of it.
      this.events.fault('inquire', error);
      return { kind: 'cannot_tell', code: 'destination_unreadable' };
    }
    const startedAt = monotonicMs();
    const answer = await provider.lookup({
      // In two phases the one object that may be committed is the only one that counts.
      providerRef: payment.commitTarget ?? payment.providerRef,
      providerKey,
      paymentId: payment.id,
      generation,
      sentSince: payment.sentSinceMs === null ? null : new Date(payment.sentSinceMs),
      by: how.by,
      deadlineMs: how.deadlineMs ?? CALL_DEADLINE_MS,
      expected: { amountMinor: payment.amount, currency: payment.currency, destination },
    });
    this.events.callEnded({
      provider: payment.provider,
      operation: 'lookup',
      evidence: answer.kind === 'found' ? 'accepted' : 'ambiguous',
      durationMs: monotonicMs() - startedAt,
    });
    // What another account or address does not have says nothing of where the payment was sent.
    if (answer.kind === 'absent' && !wasSentTo(provider, payment)) {
      return { kind: 'cannot_tell', code: 'other_target' };
    }
    return heldAgainst(payment, destination, answer);
  }
}

function wasSentTo(target: ProviderTarget, payment: OpenOutcome): boolean {
  const { adapter, account, baseUrl } = payment;
  return adapter === target.name && account === target.account && baseUrl === target.baseUrl;
}
