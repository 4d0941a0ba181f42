import type { FaultInput } from './simulator.js';

/** What the fault matrix plants, and what must come of it. Written apart from the engine's rules. */

export type Profile = 'A' | 'B' | 'C' | 'D' | 'T';
export const PROFILES: readonly Profile[] = ['A', 'B', 'C', 'D', 'T'];

/**
 * Where the first worker dies. before_gate: it held the payment armed. after_gate: submission start
 * is recorded. after_fence: it claimed, and no byte left. after_answer: the provider answered and
 * nobody wrote it down.
 */
export const CRASHES = ['none', 'before_gate', 'after_gate', 'after_fence', 'after_answer'] as const;
export type Crash = (typeof CRASHES)[number];

/** executed: only the answer is wrong. lost: nothing was executed, and the answer does not say so. */
type Group = 'plain' | 'executed' | 'lost' | 'not_taken' | 'declined' | 'lie' | 'open';

/** A longer delay than the engines' deadline, and a shorter one. */
const LATE_MS = 900;
const SLOW_MS = 50;

export const FAULTS: readonly (readonly [FaultInput, Group])[] = [
  ['none', 'plain'],
  [{ kind: 'slow', afterMs: SLOW_MS }, 'plain'],
  ['hang_after', 'executed'],
  ['reset_after', 'executed'],
  ['http_500_after', 'executed'],
  [{ kind: 'http_500_after', httpStatus: 503 }, 'executed'],
  ['http_502_html_after', 'executed'],
  ['http_502_json_after', 'executed'],
  ['http_404_json_after', 'executed'],
  ['empty_200_after', 'executed'],
  ['broken_json_after', 'executed'],
  ['truncate_after', 'executed'],
  ['unknown_status_after', 'executed'],
  ['echo_error_after', 'executed'],
  ['hang', 'lost'],
  ['reset_before', 'lost'],
  ['http_500_before', 'lost'],
  ['http_502_html_before', 'lost'],
  ['http_502_json_before', 'lost'],
  ['http_404_json_before', 'lost'],
  ['empty_200_before', 'lost'],
  ['http_429', 'not_taken'],
  ['http_401', 'not_taken'],
  ['http_403', 'not_taken'],
  ['decline', 'declined'],
  ['decline_funds', 'declined'],
  ['other_amount_after', 'lie'],
  ['other_currency_after', 'lie'],
  ['other_destination_after', 'lie'],
  ['other_object_after', 'lie'],
  ['http_400_key_reused', 'lie'],
  ['redirect_307', 'open'],
  ['http_409_in_use', 'open'],
  [{ kind: 'http_500_before', stored: true }, 'open'],
  [{ kind: 'http_500_after', stored: true }, 'open'],
  [{ kind: 'late_commit', afterMs: LATE_MS }, 'open'],
  [{ kind: 'pending_then_final', lookups: 1 }, 'open'],
  [{ kind: 'pending_then_final', lookups: 1, final: 'failed' }, 'open'],
];

/** The outcome is unknown, and the provider lies or fails when it is asked: once, then it is honest. */
export const LOOKUP_FAULTS: readonly FaultInput[] = [
  'none',
  'lookup_absent',
  { kind: 'lookup_absent', times: 2 },
  'lookup_500',
  { kind: 'lookup_lag', afterMs: 60_000 },
  'lookup_stale',
  'lookup_lost_rows',
  'lookup_two_hits',
  'reset_before',
  'http_502_html_before',
  'http_404_json_before',
  'empty_200_before',
  'broken_json_after',
  'truncate_after',
  'unknown_status_after',
  'other_amount_after',
  'other_currency_after',
  'other_destination_after',
  'other_object_after',
  'http_429',
  'http_401',
  'redirect_307',
];

/** The answer that the lookups follow was lost: after the call was executed, or before. */
export const LOST = ['reset_after', 'reset_before'] as const;

/** A payment that was executed never fails, one that was not never succeeds without being sent again. */
export function rightEndsOfLookups(profile: Profile, lost: (typeof LOST)[number]): readonly Letter[] {
  if (lost === 'reset_after') return ['S', 'R'];
  return profile === 'C' ? ['F', 'R'] : ['S', 'R'];
}

export const nameOf = (fault: FaultInput): string =>
  typeof fault === 'string'
    ? fault
    : [
        fault.kind,
        ...(fault['stored'] ? ['stored'] : []),
        ...(fault['final'] ? ['failed'] : []),
        ...(fault['times'] === undefined ? [] : ['twice']),
      ].join(' ');

export type Letter = 'S' | 'F' | 'R';

/**
 * The ends that are right, by what the provider knows and what it can be asked; every letter where only
 * the ledger can judge.
 */
export function rightEnds(profile: Profile, group: Group, crash: Crash): readonly Letter[] {
  const wasClaimed = crash === 'after_fence' || crash === 'after_answer';
  if (profile === 'D') {
    // One attempt: whatever is not known goes to people.
    if (wasClaimed) return ['R'];
    return byGroup(group, { executed: 'R', lost: 'R', lie: 'R' });
  }
  if (profile === 'C') {
    if (crash === 'after_fence') return ['F'];
    if (crash === 'after_answer') {
      const ends = { plain: 'S', executed: 'S', lost: 'F', not_taken: 'F', declined: 'F' } as const;
      return group === 'lie' || group === 'open' ? ['S', 'F', 'R'] : [ends[group]];
    }
    return byGroup(group, { executed: 'S', lost: 'F', lie: 'R' });
  }
  if (crash === 'after_answer' && group === 'lie') return ['S', 'F', 'R'];
  return byGroup(group, { executed: 'S', lost: 'S', lie: 'R' });
}

function byGroup(
  group: Group,
  ends: { readonly executed: Letter; readonly lost: Letter; readonly lie: Letter },
): readonly Letter[] {
  switch (group) {
    case 'plain':
    case 'not_taken':
      return ['S'];
    case 'declined':
      return ['F'];
    case 'executed':
    case 'lost':
    case 'lie':
      return [ends[group]];
    case 'open':
      return ['S', 'F', 'R'];
  }
}
