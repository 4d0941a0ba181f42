import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Every metric of this process. Not prom-client's global one: nothing else can slip in. */
export const registry = new Registry();

/** Label names to the closed sets of their values. Never ids, never client text. */
type Labels = Readonly<Record<string, string>>;
type None = Readonly<Record<never, string>>;

/** A count since the process started. */
export interface Count<L extends Labels = None> {
  add(labels: L, by?: number): void;
}

/** A value of now. */
export interface Level<L extends Labels = None> {
  set(labels: L, value: number): void;
  /** Forgets all values: nothing stale stays when a group is empty. */
  reset(): void;
}

/** Durations in seconds, counted into buckets. */
export interface Durations<L extends Labels = None> {
  observe(labels: L, seconds: number): void;
}

const PREFIX = 'payments_';

export function count<L extends Labels = None>(
  name: string,
  help: string,
  labelNames: readonly (keyof L & string)[] = [],
): Count<L> {
  const counter = new Counter({
    name: PREFIX + name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
  });
  return { add: (labels, by = 1) => counter.inc(labels, by) };
}

export function level<L extends Labels = None>(
  name: string,
  help: string,
  labelNames: readonly (keyof L & string)[] = [],
): Level<L> {
  const gauge = new Gauge({ name: PREFIX + name, help, labelNames: [...labelNames], registers: [registry] });
  return { set: (labels, value) => gauge.set(labels, value), reset: () => gauge.reset() };
}

export function durations<L extends Labels = None>(
  name: string,
  help: string,
  buckets: readonly number[],
  labelNames: readonly (keyof L & string)[] = [],
): Durations<L> {
  const histogram = new Histogram({
    name: PREFIX + name,
    help,
    buckets: [...buckets],
    labelNames: [...labelNames],
    registers: [registry],
  });
  return { observe: (labels, seconds) => histogram.observe(labels, seconds) };
}
