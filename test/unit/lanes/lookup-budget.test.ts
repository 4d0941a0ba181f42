import { describe, expect, it } from 'vitest';
import { LookupBudget } from '../../../src/lanes/lookup-budget.js';

describe('the budget of lookups', () => {
  // A lane of 20/s belongs to a provider that declares 25/s: 5/s are left for lookups.
  const of = (workers: number) => ({ ratePerSecond: 20, workers });

  it('is what payments leave of the declared rate', () => {
    const budget = new LookupBudget();
    expect(budget.available('a/b', of(1), 0)).toBe(5);
    for (let i = 0; i < 5; i++) budget.spend('a/b');
    expect(budget.available('a/b', of(1), 0)).toBe(0);
    expect(budget.available('a/b', of(1), 400)).toBe(2);
    expect(budget.available('a/b', of(1), 60_000)).toBe(5);
  });

  it('is shared by the workers', () => {
    const budget = new LookupBudget();
    expect(budget.available('a/b', of(5), 0)).toBe(1);
    budget.spend('a/b');
    expect(budget.available('a/b', of(5), 900)).toBe(0);
    expect(budget.available('a/b', of(5), 1_000)).toBe(1);
  });

  it('of one lane is no other lane’s, and the slowest lane still has some', () => {
    const budget = new LookupBudget();
    expect(budget.available('a/b', of(1), 0)).toBe(5);
    for (let i = 0; i < 5; i++) budget.spend('a/b');
    expect(budget.available('c/d', of(1), 0)).toBe(5);
    expect(budget.available('slow/lane', { ratePerSecond: 0.1, workers: 4 }, 0)).toBe(1);
  });
});
