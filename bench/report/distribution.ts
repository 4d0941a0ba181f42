/** The share `p` (0 to 1) of the values is at most this; nearest rank. Null: no values. */
export function percentile(values: readonly number[], p: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? null;
}

/** Median, 99th percentile and largest value, each null without values. */
export interface Distribution {
  readonly p50: number | null;
  readonly p99: number | null;
  readonly most: number | null;
}

export function distribution(values: readonly number[]): Distribution {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99), most: percentile(values, 1) };
}
