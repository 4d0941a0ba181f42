import { describe, expect, it } from 'vitest';
import { CALL_DEADLINE_MS, MAX_ATTEMPTS } from '../../../src/domain/submission-policy.js';
import {
  judgeProposal,
  type KnownFact,
  type Proposal,
  type ReviewFacts,
} from '../../../src/review/resolution.js';

const IN_FLIGHT_MS = 60_000;

const fact = (id: bigint, members: Partial<KnownFact> = {}): KnownFact => ({
  id,
  source: 'lookup',
  kind: 'found',
  status: null,
  observed_amount: null,
  observed_currency: null,
  ...members,
});

/** A payment of class A whose key lives, after one ambiguous call a day ago. */
const facts = (members: Partial<ReviewFacts> = {}): ReviewFacts => ({
  amount: 1_999n,
  currency: 'EUR',
  provider_ref: null,
  before_deadline: true,
  generation: 1,
  capability_class: 'A',
  key_alive: true,
  attempts: 1,
  last_class: 'ambiguous',
  last_error_stored: false,
  since_last_send_ms: 86_400_000,
  evidence: [fact(1n, { source: 'answer', kind: 'ambiguous' })],
  ...members,
});

const proposal = (members: Partial<Proposal>): Proposal => ({
  outcome: 'resend',
  reasonCode: 'safe_under_same_key',
  evidenceIds: [],
  proof: null,
  ...members,
});

const judge = (members: Partial<Proposal>, known: ReviewFacts): string | null =>
  judgeProposal(proposal(members), known, IN_FLIGHT_MS);

describe('sending again under the same key', () => {
  it.each([
    ['A', null],
    ['B', null],
    ['C', 'key_unusable'],
    ['D', 'key_unusable'],
    ['T', 'unsupported'],
  ] as const)('class %s: %s', (capability_class, expected) => {
    expect(judge({}, facts({ capability_class }))).toBe(expected);
  });

  it('in two phases needs a read that shows the object still inert', () => {
    const inert = fact(2n, { status: 'inert' });
    const known = facts({ capability_class: 'T', provider_ref: 'po_1', evidence: [inert] });
    expect(judge({ evidenceIds: [2n] }, known)).toBeNull();
    expect(judge({}, known)).toBe('unsupported');
    expect(
      judge({ evidenceIds: [2n] }, { ...known, evidence: [inert, fact(3n, { status: 'pending' })] }),
    ).toBe('seen_at_provider');
  });

  it.each([
    ['the key’s life is over', { key_alive: false }, 'key_unusable'],
    ['too many attempts were made', { attempts: MAX_ATTEMPTS }, 'key_unusable'],
    ['the key is somebody else’s', { last_class: 'key_mismatch' }, 'key_unusable'],
    ['the provider keeps its error', { last_error_stored: true }, 'key_unusable'],
    ['the deadline passed', { before_deadline: false }, 'deadline_over'],
    ['the provider named its object', { provider_ref: 'po_1' }, 'seen_at_provider'],
    ['a lookup found it once', { evidence: [fact(1n, { kind: 'found_other' })] }, 'seen_at_provider'],
    ['a late answer accepted it', { evidence: [fact(1n, { source: 'late_answer', kind: 'accepted' })] }, 'seen_at_provider'],
    ['money came back', { evidence: [fact(1n, { source: 'webhook', kind: 'returned' })] }, 'seen_at_provider'],
  ] as const)('is refused when %s', (_what, members, expected) => {
    expect(judge({}, facts(members as Partial<ReviewFacts>))).toBe(expected);
  }); // prettier-ignore
});

describe('another key', () => {
  const proof = { kind: 'absence_proof', statement: 'two absences' } as const;
  const next = (members: Partial<ReviewFacts>, with_: Partial<Proposal> = { proof }) =>
    judge({ outcome: 'resend_new_generation', ...with_ }, facts(members));

  it('is used at any class after a proof, once nothing can arrive any more', () => {
    for (const capability_class of ['A', 'B', 'C', 'D', 'T'] as const) {
      expect(next({ capability_class })).toBeNull();
    }
    expect(next({}, { proof: null })).toBe('proof_missing');
    const last = CALL_DEADLINE_MS + IN_FLIGHT_MS;
    expect(next({ since_last_send_ms: last - 1 })).toBe('still_in_flight');
    expect(next({ since_last_send_ms: last })).toBeNull();
    expect(next({ since_last_send_ms: null })).toBeNull();
  });

  it.each([
    ['a success', { status: 'succeeded' }],
    ['something pending', { status: 'pending' }],
    ['something with other money', { kind: 'found_other' }],
    ['several', { kind: 'found_many' }],
    ['money that came back', { source: 'webhook', kind: 'returned' }],
    ['a late answer that accepted it', { source: 'late_answer', kind: 'accepted' }],
    ['a line of a settlement file', { source: 'settlement', kind: 'amount_differs' }],
  ])('is never used after %s was seen', (_what, seen) => {
    expect(next({ evidence: [fact(1n, seen)] })).toBe('seen_at_provider');
  });

  it.each([
    ['a refusal', { status: 'failed' }],
    ['an inert object', { status: 'inert' }],
    ['silence', { kind: 'absent' }],
    ['what people once decided', { source: 'person', kind: 'resolution', status: 'pending' }],
  ])('may be used after %s', (_what, seen) => {
    expect(next({ evidence: [fact(1n, seen)] })).toBeNull();
  });

  it('is never used past the deadline, or before a first key', () => {
    expect(next({ before_deadline: false })).toBe('deadline_over');
    expect(next({ generation: null })).toBe('key_unusable');
  });
});

describe('a success', () => {
  const proof = { kind: 'provider_statement', statement: 'mail' } as const;
  const succeeded = (seen: Partial<KnownFact>) =>
    judge({ outcome: 'succeeded', proof }, facts({ evidence: [fact(1n, seen)] }));

  it.each([
    ['found_other without a status', { kind: 'found_other' }],
    ['somebody else’s key', { source: 'answer', kind: 'key_mismatch' }],
    ['another amount in a settlement file', { source: 'settlement', kind: 'amount_differs' }],
    ['another currency in a settlement file', { source: 'settlement', kind: 'currency_differs' }],
    ['another amount, however it stands', { observed_amount: 1n, observed_currency: 'EUR' }],
    ['another currency', { observed_amount: 1_999n, observed_currency: 'USD' }],
  ])('is refused over %s', (_what, seen) => {
    expect(succeeded(seen)).toBe('other_money_seen');
  });

  it.each([
    ['the same money', { observed_amount: 1_999n, observed_currency: 'EUR' }],
    ['a part that came back', { kind: 'returned', observed_amount: 1n, observed_currency: 'EUR' }],
    ['an inert object', { status: 'inert', observed_amount: 1n, observed_currency: 'EUR' }],
  ])('may be decided over %s', (_what, seen) => {
    expect(succeeded(seen)).toBeNull();
  });
});
