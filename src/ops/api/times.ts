import { InvalidArgumentError } from 'commander';

const UNIT_MS: Readonly<Record<string, number>> = Object.freeze({
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
});

/**
 * Reads `10s`, `5m`, `2h` or `30d` as milliseconds.
 * @throws InvalidArgumentError for another form.
 */
export function durationArgument(text: string): number {
  const found = /^(\d{1,9})([smhd])$/.exec(text);
  const unit = UNIT_MS[found?.[2] ?? ''];
  if (!found || unit === undefined) throw new InvalidArgumentError('Write 10s, 5m, 2h or 30d.');
  return Number(found[1]) * unit;
}

/**
 * The value of `execute_at` from `--execute-at` (sent as it is; the API judges it) or `--in`, which
 * counts from this machine's clock. `--in 0s` is `now`.
 * @returns null when neither or both were given.
 */
export function executeAtOf(
  options: { readonly executeAt?: string; readonly in?: number },
  nowMs: number,
): string | null {
  if ((options.executeAt === undefined) === (options.in === undefined)) return null;
  if (options.executeAt !== undefined) return options.executeAt;
  return options.in === 0 ? 'now' : new Date(nowMs + (options.in ?? 0)).toISOString();
}
