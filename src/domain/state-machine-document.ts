import {
  FINAL_STATES,
  PAYMENT_STATES,
  STARTED_STATES,
  TRANSITIONS,
  type PaymentState,
} from './payment-state.js';

/**
 * The transition table as a page for people: a Mermaid diagram and a table, generated, so that it
 * cannot drift from what the gate allows. The same table always gives the same text.
 */
export function stateMachineDocument(): string {
  return [
    '# State machine',
    '',
    'Generated from the transition table in `src/domain/payment-state.ts` by `npm run docs`. Do not edit.',
    '',
    '```mermaid',
    'stateDiagram-v2',
    ...edges().map(({ from, to, labels }) => `  ${from ?? '[*]'} --> ${to}: ${labels.join(', ')}`),
    ...FINAL_STATES.map((state) => `  ${state} --> [*]`),
    '```',
    '',
    'An edge that is not drawn does not exist: the gate refuses it, and so does the database.',
    '',
    '## States',
    '',
    '| State | Cancel is possible | Final |',
    '|---|---|---|',
    ...PAYMENT_STATES.map(
      (state) => `| \`${state}\` | ${isOpen(state) ? 'yes' : 'no'} | ${finality(state)} |`,
    ),
    '',
    '## Transitions',
    '',
    '| # | From | To | Cause | Guard beyond the state |',
    '|---|---|---|---|---|',
    ...TRANSITIONS.map(
      (t) => `| ${t.id} | ${words(t.from) || '(none)'} | ${words(t.to)} | ${words(t.causes)} | ${t.guard} |`,
    ),
    '',
  ].join('\n');
}

interface Edge {
  readonly from: PaymentState | null;
  readonly to: PaymentState;
  /** Rule and cause of each way along this edge. */
  readonly labels: string[];
}

/** One arrow per pair of states, in the order of the table. */
function edges(): readonly Edge[] {
  const byPair = new Map<string, Edge>();
  for (const rule of TRANSITIONS) {
    for (const from of rule.from.length === 0 ? [null] : rule.from) {
      for (const to of rule.to) {
        const edge = byPair.get(`${from}>${to}`) ?? { from, to, labels: [] };
        edge.labels.push(`${rule.id} ${rule.causes.join('/')}`);
        byPair.set(`${from}>${to}`, edge);
      }
    }
  }
  return [...byPair.values()];
}

function isOpen(state: PaymentState): boolean {
  const closed: readonly PaymentState[] = [...STARTED_STATES, ...FINAL_STATES];
  return !closed.includes(state);
}

function finality(state: PaymentState): string {
  const { length } = TRANSITIONS.filter((t) => t.from.includes(state));
  if (!(FINAL_STATES as readonly PaymentState[]).includes(state)) return 'no';
  return length === 0 ? 'yes' : 'yes, except for a return';
}

function words(list: readonly string[]): string {
  return list.map((word) => `\`${word}\``).join(', ');
}
