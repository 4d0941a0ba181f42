import { describe, expect, it } from 'vitest';
import { judgePaid } from '../../../../bench/judge/judge-run.js';
import type { ProviderView } from '../../../../bench/judge/simulator-ledger.js';
import type { World } from '../../../../bench/scenario.js';

const DUE = 1_000_000;
const payments = [
  { id: 'pay_a', dueAt: DUE },
  { id: 'pay_b', dueAt: DUE },
];

interface Findings {
  readonly view?: Partial<ProviderView>;
  readonly histories?: readonly string[];
  readonly invariants?: readonly string[];
  readonly events?: readonly { readonly name: string; readonly kind: string }[];
}

/** A world in which everything is right but what is given. */
function worldWith(findings: Findings): World {
  const view: ProviderView = {
    firstArrival: new Map([
      ['pay_a', DUE + 2],
      ['pay_b', DUE + 8.5],
    ]),
    duplicates: [],
    early: [],
    ...findings.view,
  };
  return {
    ledger: { read: () => Promise.resolve(view) },
    rows: {
      brokenHistories: () => Promise.resolve(findings.histories ?? []),
      brokenInvariants: () => Promise.resolve(findings.invariants ?? []),
    },
    stack: { events: findings.events ?? [] },
    warmUpIds: [],
  } as unknown as World;
}

describe('the judge of a run', () => {
  it('finds nothing wrong and tells how late the calls were when all were paid once, in time', async () => {
    const { failures, lateness } = await judgePaid(worldWith({}), payments);
    expect(failures).toEqual([]);
    expect(lateness).toEqual({ p50: 2, p99: 8.5, most: 8.5 });
  });

  it.each<[string, Findings]>([
    ['a payment that was paid twice', { view: { duplicates: ['pay_a'] } }],
    ['a payment that the provider calls early', { view: { early: ['pay_a'] } }],
    [
      'a call a moment before its time',
      {
        view: {
          firstArrival: new Map([
            ['pay_a', DUE - 0.001],
            ['pay_b', DUE],
          ]),
        },
      },
    ],
    ['a payment that was never paid', { view: { firstArrival: new Map([['pay_a', DUE]]) } }],
    ['a missing transition', { histories: ['1 payments miss a transition'] }],
    ['a broken invariant', { invariants: ['invariant 3 (x) is broken by 1'] }],
    ['a process that ended by itself', { events: [{ name: 'worker', kind: 'ended' }] }],
  ])('fails a run with %s', async (_what, findings) => {
    const { failures } = await judgePaid(worldWith(findings), payments);
    expect(failures).toHaveLength(1);
  });
});
