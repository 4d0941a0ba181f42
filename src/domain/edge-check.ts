import { TRANSITIONS } from './payment-state.js';

/** The SQL word for "from nothing" in an edge's text. */
const NOTHING = 'none';

/** Every legal edge as `from>to:cause`, sorted: what the database's own check accepts. */
export function edgeTexts(): readonly string[] {
  const edges = new Set<string>();
  for (const rule of TRANSITIONS) {
    const froms = rule.from.length === 0 ? [NOTHING] : rule.from;
    for (const from of froms)
      for (const to of rule.to) for (const cause of rule.causes) edges.add(`${from}>${to}:${cause}`);
  }
  return [...edges].sort();
}

/**
 * The SQL function that says whether an edge is legal, derived from the transition table. A null
 * `from_state` means "from nothing". A migration holds a frozen copy; a test compares both.
 */
export function edgeCheckSql(): string {
  const list = edgeTexts()
    .map((edge) => `    '${edge}'`)
    .join(',\n');
  return [
    'CREATE OR REPLACE FUNCTION payment_edge_is_legal(from_state text, to_state text, cause text)',
    'RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$',
    `  SELECT coalesce(from_state, '${NOTHING}') || '>' || to_state || ':' || cause IN (`,
    `${list})`,
    '$$',
  ].join('\n');
}

/** Every legal step as `from>to`, whatever its cause, sorted. Steps from nothing are inserts. */
export function stepTexts(): readonly string[] {
  const steps = edgeTexts().map((edge) => edge.slice(0, edge.indexOf(':')));
  return [...new Set(steps)].filter((step) => !step.startsWith(NOTHING)).sort();
}

/** The SQL function that says whether some cause allows a step of the head row. */
export function stepCheckSql(): string {
  const list = stepTexts()
    .map((step) => `    '${step}'`)
    .join(',\n');
  return [
    'CREATE OR REPLACE FUNCTION payment_step_is_legal(from_state text, to_state text)',
    'RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$',
    `  SELECT from_state || '>' || to_state IN (`,
    `${list})`,
    '$$',
  ].join('\n');
}
