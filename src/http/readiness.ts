/** One check of /readyz took longer than this: it counts as failed (ms). */
export const READINESS_CHECK_MS = 1_000;

/** What a probe may learn of one check; reasons are in the log, the port is open to probes. */
export type Verdict = 'ok' | 'failed' | 'timeout' | 'standby' | 'schema_older' | 'schema_newer';

/** A later release migrates first, and its migrations are safe beside this one. */
const FIT: ReadonlySet<Verdict> = new Set<Verdict>(['ok', 'schema_newer']);

export interface ReadinessCheck {
  /** Resolves when well, throws when not; false also means not. A verdict says it more precisely. */
  readonly run: () => Promise<Verdict | boolean | void> | boolean;
  /** A check that is not required is shown and changes nothing: the API works without Temporal. */
  readonly required: boolean;
}

export interface Readiness {
  readonly ok: boolean;
  readonly checks: Readonly<Record<string, Verdict>>;
}

function withinLimit(verdict: Promise<Verdict>, limitMs: number): Promise<Verdict> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<Verdict>((resolve) => {
    timer = setTimeout(() => resolve('timeout'), limitMs);
  });
  return Promise.race([verdict, timeout]).finally(() => clearTimeout(timer));
}

function verdictFrom(answer: Verdict | boolean | void): Verdict {
  if (typeof answer === 'string') return answer;
  return answer === false ? 'failed' : 'ok';
}

/**
 * Joins named checks to one answer: ok when every required one is. All run at once, each for at
 * most a second; a check that hangs is not started again before it has ended, so a dead dependency
 * collects no calls.
 * @returns a function that never throws and that says no reasons: the port is open to probes.
 */
export function readiness(
  checks: Readonly<Record<string, ReadinessCheck>>,
  limitMs: number = READINESS_CHECK_MS,
): () => Promise<Readiness> {
  const running = new Map<string, Promise<Verdict>>();
  const verdictOf = (name: string, check: ReadinessCheck): Promise<Verdict> => {
    const earlier = running.get(name);
    if (earlier) return earlier;
    const verdict = (async (): Promise<Verdict> => verdictFrom(await check.run()))()
      .catch((): Verdict => 'failed')
      .finally(() => running.delete(name));
    running.set(name, verdict);
    return verdict;
  };
  return async () => {
    const answers = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => {
        const verdict = await withinLimit(verdictOf(name, check), limitMs);
        return { name, verdict, blocks: check.required && !FIT.has(verdict) };
      }),
    );
    return {
      ok: !answers.some((answer) => answer.blocks),
      checks: Object.fromEntries(answers.map(({ name, verdict }) => [name, verdict])),
    };
  };
}
