import { hash } from 'node:crypto';
import { NO_FAULT, OPERATIONS, PlanRefused, isRecord } from './fault.js';
import type { Fault, Operation } from './fault.js';
import { parseFault } from './fault-reading.js';
import { paymentIdOf } from './payout-book.js';

type Script = Readonly<Record<Operation, readonly Fault[]>>;

interface RandomPlan {
  readonly seed: string;
  readonly rates: Readonly<Record<Operation, readonly { readonly fault: Fault; readonly rate: number }[]>>;
}

/** The counts of the random plan are kept under a name that no reference can have. */
const RANDOM = '';

/** Lookups that deny what exists. */
const HIDING: readonly string[] = ['lookup_absent', 'lookup_lost_rows'];

/**
 * Decides which request goes wrong, and how. First the script of the payment (or of one full
 * reference), then the script `*` for every payment, then the seeded random plan: a function of
 * seed, operation, payment and the count of requests, so that the same traffic meets the same
 * faults again. While a fault sticks, requests of its payment and operation get it and are not
 * counted. Lives in memory: a restarted simulator is honest until it gets a plan.
 */
export class FaultPlan {
  private scripts = new Map<string, Script>();
  private random: RandomPlan | null = null;
  /** Requests so far: by script (or the random plan), then by operation and payment. */
  private counts = new Map<string, Map<string, number>>();
  /** By operation and payment: the fault that sticks, and until when on the virtual clock. */
  private sticking = new Map<string, { readonly fault: Fault; readonly until: number }>();

  /** @param now the virtual clock, epoch milliseconds; only sticking faults ask for it. */
  constructor(private readonly now: () => number) {}

  /**
   * `{ scripts: [{ reference, submit, commit, lookup, cancel, webhook }], random: { seed, rates } | null, replace }`.
   *
   * A script's lists hold the faults of the payment's next requests in order; a new script for a
   * reference replaces its old one. `rates` holds lists of faults with a `rate` from 0 to 1 for
   * each operation. `replace: true` drops all that was planned before.
   * @throws PlanRefused; then nothing has changed.
   */
  change(input: unknown): void {
    if (!isRecord(input)) throw new PlanRefused('A plan is an object.');
    refuseUnknown(input, ['scripts', 'random', 'replace']);
    const scripts = readList(input['scripts'] ?? [], 'scripts').map(readScript);
    const random = input['random'] === undefined ? undefined : readRandom(input['random']);
    if (input['replace'] === true) this.clear();
    for (const { reference, script } of scripts) {
      this.scripts.set(reference, script);
      this.counts.delete(reference);
      if (reference === '*') this.sticking.clear();
      for (const operation of OPERATIONS) this.sticking.delete(`${operation}\n${paymentIdOf(reference)}`);
    }
    if (random === undefined) return;
    this.random = random;
    this.counts.delete(RANDOM);
    this.sticking.clear();
  }

  clear(): void {
    this.scripts.clear();
    this.counts.clear();
    this.sticking.clear();
    this.random = null;
  }

  /** The fault of this request. Each call counts as one request. */
  next(operation: Operation, reference: string): Fault {
    const paymentId = paymentIdOf(reference);
    const name = `${operation}\n${paymentId}`;
    const stuck = this.sticking.get(name);
    if (stuck && this.now() < stuck.until) return stuck.fault;
    this.sticking.delete(name);
    const fault = this.planned(operation, reference, paymentId);
    if (fault.stickyMs > 0) this.sticking.set(name, { fault, until: this.now() + fault.stickyMs });
    return fault;
  }

  /**
   * Whether scans, which name no payment, leave this one out: its next lookup would be denied. Does
   * not count as a request. The random plan hides nothing unless a fault of it sticks.
   */
  hidesFromScans(reference: string): boolean {
    const paymentId = paymentIdOf(reference);
    const key = `lookup\n${paymentId}`;
    const stuck = this.sticking.get(key);
    if (stuck && this.now() < stuck.until) return HIDING.includes(stuck.fault.kind);
    for (const name of [reference, paymentId, '*']) {
      const list = this.scripts.get(name)?.lookup;
      const fault = list && nth(list, this.counts.get(name)?.get(key) ?? 0);
      if (fault) return HIDING.includes(fault.kind);
    }
    return false;
  }

  private planned(operation: Operation, reference: string, paymentId: string): Fault {
    for (const name of [reference, paymentId, '*']) {
      const list = this.scripts.get(name)?.[operation];
      if (!list || list.length === 0) continue;
      const fault = nth(list, this.count(name, operation, paymentId));
      if (fault) return fault;
    }
    if (!this.random) return NO_FAULT;
    return draw(this.random, operation, paymentId, this.count(RANDOM, operation, paymentId));
  }

  private count(name: string, operation: Operation, paymentId: string): number {
    const counts = this.counts.get(name) ?? new Map<string, number>();
    this.counts.set(name, counts);
    const key = `${operation}\n${paymentId}`;
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return count;
  }
}

function nth(list: readonly Fault[], index: number): Fault | undefined {
  let passed = 0;
  for (const fault of list) {
    passed += fault.times;
    if (index < passed) return fault;
  }
  return undefined;
}

function draw(plan: RandomPlan, operation: Operation, paymentId: string, count: number): Fault {
  const digest = hash('sha256', `${plan.seed}\n${operation}\n${paymentId}\n${count}`, 'hex');
  let point = parseInt(digest.slice(0, 8), 16) / 0x1_0000_0000;
  for (const { fault, rate } of plan.rates[operation]) {
    if (point < rate) return fault;
    point -= rate;
  }
  return NO_FAULT;
}

function readScript(input: unknown): { readonly reference: string; readonly script: Script } {
  if (!isRecord(input)) throw new PlanRefused('A script is an object.');
  refuseUnknown(input, ['reference', ...OPERATIONS]);
  const reference = input['reference'];
  if (typeof reference !== 'string' || reference === '') throw new PlanRefused('A script needs a reference.');
  return {
    reference,
    script: perOperation((operation) =>
      readList(input[operation] ?? [], operation).map((fault) => parseFault(fault, operation)),
    ),
  };
}

function readRandom(input: unknown): RandomPlan | null {
  if (input === null) return null;
  if (!isRecord(input)) throw new PlanRefused('A random plan is an object or null.');
  refuseUnknown(input, ['seed', 'rates']);
  const { seed, rates } = input;
  if (typeof seed !== 'string' && typeof seed !== 'number')
    throw new PlanRefused('A random plan needs a seed.');
  if (!isRecord(rates)) throw new PlanRefused('A random plan needs rates.');
  refuseUnknown(rates, OPERATIONS);
  return {
    seed: String(seed),
    rates: perOperation((operation) => readRates(rates[operation] ?? [], operation)),
  };
}

function readRates(input: unknown, operation: Operation): { fault: Fault; rate: number }[] {
  let sum = 0;
  const rates = readList(input, `rates.${operation}`).map((entry) => {
    if (!isRecord(entry)) throw new PlanRefused('A rate is an object with a kind and a rate.');
    const { rate, ...fault } = entry;
    if (typeof rate !== 'number' || !(rate >= 0 && rate <= 1)) {
      throw new PlanRefused('A rate is a number from 0 to 1.');
    }
    sum += rate;
    return { fault: parseFault(fault, operation), rate };
  });
  if (sum > 1) throw new PlanRefused(`The rates of ${operation} add up to more than 1.`);
  return rates;
}

function perOperation<T>(read: (operation: Operation) => T): Record<Operation, T> {
  return Object.fromEntries(OPERATIONS.map((operation) => [operation, read(operation)])) as Record<
    Operation,
    T
  >;
}

function readList(input: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(input)) throw new PlanRefused(`${name} must be a list.`);
  return input;
}

function refuseUnknown(input: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(input).find((name) => !known.includes(name));
  if (unknown) throw new PlanRefused(`"${unknown}" is no part of a plan here. Known: ${known.join(', ')}.`);
}
