import { describe, expect, it } from 'vitest';
import { PlanRefused } from '../../../src/simulator/fault.js';
import { FaultPlan } from '../../../src/simulator/fault-plan.js';

let nowMs = 0;

function kinds(plan: FaultPlan, reference: string, count: number): string[] {
  return Array.from({ length: count }, () => plan.next('submit', reference).kind);
}

describe('the fault plan', () => {
  it('without a plan every request is honest', () => {
    expect(kinds(new FaultPlan(() => nowMs), 'pay_a/1', 3)).toEqual(['none', 'none', 'none']);
  });

  it("a payment's script gives its next requests their faults in order, over all generations", () => {
    const plan = new FaultPlan(() => nowMs);
    plan.next('submit', 'pay_a/1');
    plan.change({
      scripts: [{ reference: 'pay_a', submit: ['reset_after', { kind: 'http_429', times: 2 }, 'none'] }],
    });
    expect(kinds(plan, 'pay_b/1', 1)).toEqual(['none']);
    expect(kinds(plan, 'pay_a/1', 2)).toEqual(['reset_after', 'http_429']);
    expect(kinds(plan, 'pay_a/2', 3)).toEqual(['http_429', 'none', 'none']);
  });

  it('each operation counts for itself', () => {
    const plan = new FaultPlan(() => nowMs);
    plan.change({ scripts: [{ reference: 'pay_a', submit: ['hang'], lookup: ['lookup_absent'] }] });
    expect(plan.next('lookup', 'pay_a/1').kind).toBe('lookup_absent');
    expect(plan.next('submit', 'pay_a/1').kind).toBe('hang');
    expect(plan.next('commit', 'pay_a/1').kind).toBe('none');
  });

  it('the script * holds for every payment that has none of its own', () => {
    const plan = new FaultPlan(() => nowMs);
    plan.change({
      scripts: [
        { reference: '*', submit: ['http_500_after'] },
        { reference: 'pay_a', submit: ['decline'] },
      ],
    });
    expect(kinds(plan, 'pay_b/1', 2)).toEqual(['http_500_after', 'none']);
    expect(kinds(plan, 'pay_c/1', 2)).toEqual(['http_500_after', 'none']);
    expect(kinds(plan, 'pay_a/1', 3)).toEqual(['decline', 'http_500_after', 'none']);
  });

  it('"always" never ends', () => {
    const plan = new FaultPlan(() => nowMs);
    plan.change({ scripts: [{ reference: 'pay_a', submit: [{ kind: 'decline', times: 'always' }] }] });
    expect(new Set(kinds(plan, 'pay_a/1', 50))).toEqual(new Set(['decline']));
  });

  it('a new script starts anew, and replace drops the others', () => {
    const plan = new FaultPlan(() => nowMs);
    plan.change({
      scripts: [
        { reference: 'pay_a', submit: ['hang'] },
        { reference: '*', submit: ['decline'] },
      ],
    });
    plan.next('submit', 'pay_a/1');
    plan.change({ scripts: [{ reference: 'pay_a', submit: ['reset_before'] }], replace: true });
    expect(kinds(plan, 'pay_a/1', 2)).toEqual(['reset_before', 'none']);
    expect(kinds(plan, 'pay_b/1', 1)).toEqual(['none']);
  });

  it('the random plan gives the same traffic the same faults, another seed others', () => {
    const drawn = (seed: number): string[] => {
      const plan = new FaultPlan(() => nowMs);
      plan.change({ random: { seed, rates: { submit: [{ kind: 'reset_after', rate: 0.5 }] } } });
      return Array.from({ length: 200 }, (_, i) => plan.next('submit', `pay_${i % 40}/1`).kind);
    };
    expect(drawn(1)).toEqual(drawn(1));
    expect(drawn(1)).not.toEqual(drawn(2));
    const faults = drawn(1).filter((kind) => kind === 'reset_after').length;
    expect(faults).toBeGreaterThan(60);
    expect(faults).toBeLessThan(140);
  });

  it('a script goes before the random plan', () => {
    const plan = new FaultPlan(() => nowMs);
    plan.change({
      scripts: [{ reference: 'pay_a', submit: ['none'] }],
      random: { seed: 'x', rates: { submit: [{ kind: 'decline', rate: 1 }] } },
    });
    expect(kinds(plan, 'pay_a/1', 2)).toEqual(['none', 'decline']);
  });

  it('a fault that sticks stays for its time, and the script goes on where it was', () => {
    const plan = new FaultPlan(() => nowMs);
    const absent = { kind: 'lookup_absent', stickyMs: 100 };
    plan.change({ scripts: [{ reference: 'pay_a', lookup: [absent, 'lookup_500'] }] });
    const lookup = (): string => plan.next('lookup', 'pay_a/1').kind;
    expect([lookup(), lookup(), lookup()]).toEqual(['lookup_absent', 'lookup_absent', 'lookup_absent']);
    expect(plan.next('lookup', 'pay_b/1').kind).toBe('none');
    expect(plan.next('submit', 'pay_a/1').kind).toBe('none');
    nowMs += 100;
    expect([lookup(), lookup()]).toEqual(['lookup_500', 'none']);
  });

  it('hides from scans what the next lookup would deny, without counting it', () => {
    const plan = new FaultPlan(() => nowMs);
    plan.change({ scripts: [{ reference: 'pay_a', lookup: ['lookup_absent'] }] });
    expect(plan.hidesFromScans('pay_a/1')).toBe(true);
    expect(plan.hidesFromScans('pay_a/1')).toBe(true);
    expect(plan.hidesFromScans('pay_b/1')).toBe(false);
    plan.next('lookup', 'pay_a/1');
    expect(plan.hidesFromScans('pay_a/1')).toBe(false);
  });

  it.each<[string, unknown, RegExp]>([
    ['a list', [], /^A plan is an object/],
    ['an unknown member', { script: [] }, /^"script" is no part of a plan/],
    ['a script without reference', { scripts: [{ submit: ['hang'] }] }, /needs a reference/],
    ['an unknown operation', { scripts: [{ reference: 'a', refund: ['hang'] }] }, /^"refund" is no part/],
    [
      'an unknown fault',
      { scripts: [{ reference: 'a', submit: ['explode'] }] },
      /^"explode" is no fault of submit/,
    ],
    [
      'a fault of another operation',
      { scripts: [{ reference: 'a', lookup: ['decline'] }] },
      /no fault of lookup/,
    ],
    ['slow without a delay', { scripts: [{ reference: 'a', submit: ['slow'] }] }, /^slow needs afterMs/],
    [
      'a return without a delay',
      { scripts: [{ reference: 'a', submit: ['return_after'] }] },
      /^return_after needs afterMs/,
    ],
    [
      'six copies',
      { scripts: [{ reference: 'a', submit: [{ kind: 'double', copies: 6 }] }] },
      /^The option copies of double must be from 1 to 5/,
    ],
    [
      'a fault of calls for an event',
      { scripts: [{ reference: 'a', webhook: ['hang'] }] },
      /no fault of webhook/,
    ],
    [
      'a booked amount that is not given',
      { scripts: [{ reference: 'a', submit: [{ kind: 'other_amount_after', booked: true }] }] },
      /must be given/,
    ],
    [
      'an unknown option',
      { scripts: [{ reference: 'a', submit: [{ kind: 'slow', afterMs: 1, until: 2 }] }] },
      /^The option until of slow/,
    ],
    [
      'rates above one',
      {
        random: {
          seed: 1,
          rates: {
            submit: [
              { kind: 'hang', rate: 0.6 },
              { kind: 'decline', rate: 0.6 },
            ],
          },
        },
      },
      /add up to more than 1/,
    ],
  ])('%s is refused and changes nothing', (_title, input, sentence) => {
    const plan = new FaultPlan(() => nowMs);
    plan.change({ scripts: [{ reference: 'pay_a', submit: ['decline'] }] });
    expect(() => plan.change(input)).toThrow(PlanRefused);
    expect(() => plan.change(input)).toThrow(sentence);
    expect(kinds(plan, 'pay_a/1', 1)).toEqual(['decline']);
  });
});
