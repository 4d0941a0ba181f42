/** One check of /readyz took longer than this: it counts as failed (ms). */
export const READINESS_CHECK_MS = 1_000;

export interface ReadinessCheck {
  /** Resolves when well, throws when not; false also means not. */
  readonly run: () => Promise<boolean | void> | boolean;
  /** A check that is not required is shown and changes nothing: the API works without Temporal. */
  readonly required: boolean;
}

export interface Readiness {
  readonly ok: boolean;
  readonly checks: Readonly<Record<string, 'ok' | 'failed' | 'timeout'>>;
}

type Verdict = 'ok' | 'failed' | 'timeout';

function withinLimit(verdict: Promise<Verdict>, limitMs: number): Promise<Verdict> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<Verdict>((resolve) => {
    timer = setTimeout(() => resolve('timeout'), limitMs);
  });
  return Promise.race([verdict, timeout]).finally(() => clearTimeout(timer));
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
    const verdict = (async (): Promise<Verdict> => ((await check.run()) === false ? 'failed' : 'ok'))()
      .catch((): Verdict => 'failed')
      .finally(() => running.delete(name));
    running.set(name, verdict);
    return verdict;
  };
  return async () => {
    const answers = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => {
        const verdict = await withinLimit(verdictOf(name, check), limitMs);
        return { name, verdict, blocks: check.required && verdict !== 'ok' };
      }),
    );
    return {
      ok: !answers.some((answer) => answer.blocks),
      checks: Object.fromEntries(answers.map(({ name, verdict }) => [name, verdict])),
    };
  };
}
