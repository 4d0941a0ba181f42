/**
 * What two people can decide about a payment in review, and what each decision needs. Pure: the
 * service reads the facts under the payment's lock, and the gate's own statement checks again what
 * guards money.
 */

import type { CapabilityClass } from '../providers/provider-descriptor.js';
import { CALL_DEADLINE_MS, MAX_ATTEMPTS } from '../domain/submission-policy.js';
import { OTHER_MONEY_KINDS } from '../payments/review-reasons.js';

export const OUTCOMES = ['succeeded', 'failed', 'submitted', 'resend', 'resend_new_generation'] as const;
export type ResolutionOutcome = (typeof OUTCOMES)[number];

/** Why, in one word that can be counted. */
export const REASON_CODES = [
  'provider_confirmed',
  'provider_refused',
  'provider_pending',
  'settlement_shows',
  'proven_not_executed',
  'safe_under_same_key',
] as const;
export type ReasonCode = (typeof REASON_CODES)[number];

/**
 * In writing: what the provider says itself, its stored refusal under our key, or two absences that
 * count (far enough apart, by two ways, with a known object found meanwhile).
 */
export const PROOF_KINDS = ['provider_statement', 'stored_refusal', 'absence_proof'] as const;
export type ProofKind = (typeof PROOF_KINDS)[number];

/** A proposal is open for one cycle of shifts. */
export const PROPOSAL_LIFE_HOURS = 24;

export interface Proposal {
  readonly outcome: ResolutionOutcome;
  readonly reasonCode: ReasonCode;
  /** Rows of evidence of this payment that the proposal rests on, each once, ascending. */
  readonly evidenceIds: readonly bigint[];
  readonly proof: { readonly kind: ProofKind; readonly statement: string } | null;
}

/** A row of evidence, as far as decisions need it. */
export interface KnownFact {
  readonly id: bigint;
  readonly source: string;
  readonly kind: string;
  readonly status: string | null;
  readonly observed_amount: bigint | null;
  readonly observed_currency: string | null;
}

/** The payment and what was sent for it, read under its lock. Durations in ms on the database's clock. */
export interface ReviewFacts {
  readonly amount: bigint;
  readonly currency: string;
  readonly provider_ref: string | null;
  readonly before_deadline: boolean;
  /** Null: nothing was ever sent under a key. */
  readonly generation: number | null;
  readonly capability_class: CapabilityClass | null;
  readonly key_alive: boolean;
  /** Attempts of the newest generation. */
  readonly attempts: number;
  readonly last_class: string | null;
  /** The provider keeps its error under our key: the same key would only show it again. */
  readonly last_error_stored: boolean;
  readonly since_last_send_ms: number | null;
  readonly evidence: readonly KnownFact[];
}

/** Every decision rests on something: why this one may not be proposed, as a code; null: it may. */
export type ResolutionFault =
  | 'evidence_unknown'
  | 'unsupported'
  | 'other_money_seen'
  | 'key_unusable'
  | 'deadline_over'
  | 'seen_at_provider'
  | 'proof_missing'
  | 'still_in_flight';

/**
 * Judges a proposal by what is known. A written statement of the provider supports every outcome;
 * the other proofs say that nothing was executed. Another key is never used without a proof, before
 * a lost request could have ended, or when anything was seen that is paid, or may be yet.
 * @param maxInFlightMs the longest time that a lost request may still execute at this provider.
 */
export function judgeProposal(
  proposal: Proposal,
  facts: ReviewFacts,
  maxInFlightMs: number,
): ResolutionFault | null {
  const cited = facts.evidence.filter((fact) => proposal.evidenceIds.includes(fact.id));
  if (cited.length !== proposal.evidenceIds.length) return 'evidence_unknown';
  const isStated = proposal.proof?.kind === 'provider_statement';
  switch (proposal.outcome) {
    case 'succeeded':
      if (facts.evidence.some((fact) => isOtherMoney(fact, facts))) return 'other_money_seen';
      return isStated || cited.some((fact) => isSameMoney(fact, facts) && fact.status === 'succeeded')
        ? null
        : 'unsupported';
    case 'submitted':
      return isStated || cited.some((fact) => fact.status === 'pending') ? null : 'unsupported';
    case 'failed':
      return proposal.proof !== null || cited.some(saysRefused) ? null : 'unsupported';
    case 'resend':
      return judgeResend(cited, facts);
    case 'resend_new_generation':
      return judgeNewGeneration(proposal, facts, maxInFlightMs);
  }
}

/** Under the same key, as the automatic resend; that nobody found it is for two people to weigh. */
function judgeResend(cited: readonly KnownFact[], facts: ReviewFacts): ResolutionFault | null {
  if (!facts.before_deadline) return 'deadline_over';
  if (!facts.key_alive || facts.attempts >= MAX_ATTEMPTS || facts.last_class === 'key_mismatch') {
    return 'key_unusable';
  }
  switch (facts.capability_class) {
    case 'A':
    case 'B':
      if (facts.last_error_stored) return 'key_unusable';
      return facts.provider_ref !== null || facts.evidence.some(wasSeen) ? 'seen_at_provider' : null;
    case 'T':
      if (facts.evidence.some(wasSeen)) return 'seen_at_provider';
      return cited.some((fact) => fact.status === 'inert') ? null : 'unsupported';
    case 'C':
    case 'D':
    case null:
      return 'key_unusable';
  }
}

function judgeNewGeneration(
  { proof }: Proposal,
  facts: ReviewFacts,
  maxInFlightMs: number,
): ResolutionFault | null {
  if (proof === null) return 'proof_missing';
  if (facts.generation === null) return 'key_unusable';
  if (!facts.before_deadline) return 'deadline_over';
  if (facts.evidence.some(mayMeanPaid)) return 'seen_at_provider';
  const since = facts.since_last_send_ms;
  return since !== null && since < CALL_DEADLINE_MS + maxInFlightMs ? 'still_in_flight' : null;
}

function isSameMoney(fact: KnownFact, { amount, currency }: ReviewFacts): boolean {
  return fact.observed_amount === amount && fact.observed_currency === currency;
}

/** As the gate's guard of T18 has it. */
function isOtherMoney(fact: KnownFact, { amount, currency }: ReviewFacts): boolean {
  if (fact.kind === 'returned' || fact.status === 'inert') return false;
  return (
    OTHER_MONEY_KINDS.includes(fact.kind) ||
    (fact.observed_amount !== null && fact.observed_amount !== amount) ||
    (fact.observed_currency !== null && fact.observed_currency !== currency)
  );
}

function saysRefused({ status, kind }: KnownFact): boolean {
  return status === 'failed' || kind === 'rejected' || kind === 'rejected_funds';
}

const SEEN_KINDS: readonly string[] = ['accepted', 'found', 'found_other', 'found_many', 'returned'];

/** As the guard of every call of a later generation has it (src/payments/earlier-generation.ts). */
function mayMeanPaid({ source, kind, status }: KnownFact): boolean {
  if (source === 'person') return false;
  if (status === null) return source === 'settlement' || SEEN_KINDS.includes(kind);
  return status === 'succeeded' || status === 'pending';
}

/** Something that could have moved money was once seen under our reference. */
function wasSeen({ source, kind, status }: KnownFact): boolean {
  if (status === 'inert') return false;
  if (source === 'late_answer') return kind === 'accepted' || kind === 'key_mismatch';
  return kind === 'found' || kind === 'found_other' || kind === 'found_many' || kind === 'returned';
}
