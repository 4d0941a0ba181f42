import { CLASS_RULES, CALL_DEADLINE_MS, LOOK_BEFORE_SEND_MS } from '../domain/submission-policy.js';
import { unreadableCode } from '../encryption/unreadable.js';
import type { Sql } from '../persistence/database.js';
import { monotonicMs } from '../platform/clock.js';
import {
  notSent,
  type AttemptContext,
  type LookupAnswer,
  type PaymentProvider,
  type PreparedSubmission,
  type ProviderResult,
} from '../providers/payment-provider.js';
import { capabilityClass } from '../providers/provider-descriptor.js';
import type { Providers, SubmissionCipher } from './arming.service.js';
import { fileLookup, pauseForSeveral } from './inquiry.store.js';
import { readOpenOutcome } from './open-outcome.store.js';
import type { ProviderLookup } from './provider-lookup.js';
import type { SubmissionEvents } from './submission-events.js';
import type { Claim } from './submission.store.js';
import type { WorkerLease } from './worker-lease.js';

/** Makes the one provider call of a claimed attempt, as the class of its generation wants it. */
export class ProviderCall {
  constructor(
    private readonly sql: Sql,
    private readonly lease: WorkerLease,
    private readonly providers: Providers,
    private readonly cipher: SubmissionCipher,
    private readonly lookups: ProviderLookup,
    private readonly events: SubmissionEvents,
    /** From the call of the adapter until its answer, ms. */
    private readonly deadlineMs = CALL_DEADLINE_MS,
  ) {}

  /**
   * Fenced by the claim already. Never throws.
   * @param sinceClaim monotonic ms at which the claim was committed, or a moment later.
   */
  async make(claim: Claim, sinceClaim: number): Promise<ProviderResult> {
    const provider = this.providers.get(claim.provider);
    if (!provider) return notSent('provider_unknown');
    if (capabilityClass(provider.capabilities()) !== claim.capabilityClass) return notSent('class_changed');
    // Under another credential the key would be new to the provider, and no protection.
    const { scope } = provider.capabilities().idempotency;
    if (scope !== 'account' && provider.credentialId !== claim.credentialId)
      return notSent('credential_changed');
    const prepared = await this.prepared(claim);
    if (!prepared) return notSent('parameters_unreadable');
    const attempt: AttemptContext = {
      paymentId: claim.paymentId,
      generation: claim.generation,
      attempt: claim.no,
      providerKey: claim.providerKey,
      commitTry: claim.commitTry,
      deadlineMs: this.deadlineMs,
      mayWrite: () =>
        this.lease.isHeldBy(claim.owner) &&
        monotonicMs() - sinceClaim < Math.min(claim.keyValidInMs, CALL_DEADLINE_MS),
    };
    if (claim.phase === 'commit') return this.commit(provider, claim, prepared, attempt);
    if (CLASS_RULES[claim.capabilityClass].looksBeforeSend) {
      const known = await this.lookBeforeSend(provider, claim);
      if (known) return known;
    }
    return provider.submit(prepared, attempt);
  }

  /** Only the stored target is ever committed: an answer that names another object is not ours. */
  private async commit(
    provider: PaymentProvider,
    claim: Claim,
    prepared: PreparedSubmission,
    attempt: AttemptContext,
  ): Promise<ProviderResult> {
    if (claim.commitTarget === null) return notSent('no_commit_target');
    const result = await provider.commit(prepared, claim.commitTarget, attempt);
    if (result.providerRef !== null && result.providerRef !== claim.commitTarget) {
      return { ...result, class: 'key_mismatch', code: 'other_object' };
    }
    // A refusal stored under the second key says nothing of a first commit that may still land.
    return claim.commitTry > 1 && result.status === 'failed' ? { ...result, replayed: false } : result;
  }

  /**
   * A provider without keys: what is there already is adopted instead of sent, and without an answer
   * nothing is sent.
   * @returns null when the provider says that it has none: the send goes on.
   */
  private async lookBeforeSend(provider: PaymentProvider, claim: Claim): Promise<ProviderResult | null> {
    try {
      const payment = await readOpenOutcome(this.sql, claim.paymentId);
      if (!payment) return notSent('payment_missing');
      const answer = await this.lookups.ask(provider, payment, {
        by: 'reference',
        deadlineMs: LOOK_BEFORE_SEND_MS,
      });
      if (answer.kind === 'found_many')
        await pauseForSeveral(this.sql, payment.lane, `worker:${claim.owner}`);
      await fileLookup(this.sql, payment, answer);
      return resultBeforeSend(answer);
    } catch (error) {
      // Storage is away: what is not written down was not looked up, and nothing was sent yet.
      this.events.fault('submit-payment', error);
      return notSent('look_before_send_failed');
    }
  }

  private async prepared(claim: Claim): Promise<PreparedSubmission | null> {
    let parameters: string;
    try {
      parameters = await this.cipher.openParameters({
        tenantId: claim.tenantId,
        paymentId: claim.paymentId,
        keyId: claim.parametersKeyId,
        ciphertext: claim.parameters,
        sha256: claim.parametersSha256,
      });
    } catch (error) {
      // Also a key that could not be read: nothing was sent, and the next attempt reads it again.
      if (unreadableCode(error) === null) this.events.fault('submit-payment', error);
      return null;
    }
    return {
      parameters,
      parametersSha256: claim.parametersSha256.toString('hex'),
      adapter: claim.adapter,
      adapterVersion: claim.adapterVersion,
      apiVersion: claim.apiVersion,
      credentialId: claim.credentialId,
      account: claim.account,
      baseUrl: claim.baseUrl,
    };
  }
}

function resultBeforeSend(answer: LookupAnswer): ProviderResult | null {
  switch (answer.kind) {
    case 'absent':
      return answer.by.includes('reference') ? null : notSent('look_before_send_failed');
    case 'cannot_tell':
      return notSent('look_before_send_failed');
    case 'found':
      // The adapter says what became of it in its class; `accepted` or a refusal.
      return answer.result;
    case 'found_other':
      return { ...answer.result, class: 'key_mismatch' };
    case 'found_many':
      return { ...notSent('several_found'), class: 'key_mismatch' };
  }
}
