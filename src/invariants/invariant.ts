/** Which payments a check looks at: all, or those with a transition since `$1` (index payment_transition_by_time). */
export type Scope = 'full' | 'recent';

/** A condition on a column that holds payment ids, for the scope of the run. */
export type Within = (column: string) => string;

const WITHIN: Readonly<Record<Scope, Within>> = Object.freeze({
  full: () => 'TRUE',
  recent: (column) =>
    `${column} IN (SELECT recent.payment_id FROM payment_transition recent WHERE recent.at >= $1::timestamptz)`,
});

/** Something that must hold for every payment at every time. */
export interface Invariant {
  /** Its number among the invariants; a metric label and the name in reports. */
  readonly id: number;
  /** What holds, as a claim. */
  readonly title: string;
  /**
   * False: always looks at everything, by partial indexes, since time alone can break it. True:
   * only a change of the payment can, so a run may be limited to what changed.
   */
  readonly scoped: boolean;
  /** A query with one column `id`: the payments that break it, possibly more than once. */
  readonly text: (within: Within) => string;
}

/** The most ids that one check names; the count is always whole. */
export const MOST_IDS = 100;

/** The whole statement of a check: one row with `count` and at most 100 `ids`. `$1`: since when, recent only. */
export function checkText(invariant: Invariant, scope: Scope): string {
  return `WITH broken AS (SELECT DISTINCT id FROM (${invariant.text(WITHIN[scope])}) found)
SELECT (SELECT count(*) FROM broken)::integer AS count,
       ARRAY(SELECT id FROM broken ORDER BY id LIMIT ${MOST_IDS}) AS ids`;
}
