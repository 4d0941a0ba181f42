/** Gets a line while a step runs. */
export type Report = (line: string) => void;

/** One piece of work. `run` answers a note for its line, or nothing. */
export interface Step {
  readonly title: string;
  readonly run: (report: Report) => Promise<string | void>;
}

export interface StepGroup {
  readonly title: string;
  /** True: the steps need nothing of each other. */
  readonly concurrent: boolean;
  readonly steps: readonly PlanItem[];
}

export type PlanItem = Step | StepGroup;

/**
 * Makes steps that share one end: the first that fails aborts `ending` with its error, so that the
 * others stop waiting and those to come do not begin.
 */
export function stepMaker(ending: AbortController): (title: string, run: Step['run']) => Step {
  return (title, run) => ({
    title,
    run: async (report) => {
      ending.signal.throwIfAborted();
      try {
        return await run(report);
      } catch (error) {
        ending.abort(error);
        throw error;
      }
    },
  });
}

/**
 * Runs a plan without showing it. Resolves when every step has settled, so that nothing goes on in
 * the background.
 * @throws the error of the first step that failed, in order of the plan.
 */
export async function runPlan(items: readonly PlanItem[], concurrent = false): Promise<void> {
  const runItem = async (item: PlanItem): Promise<void> => {
    if ('run' in item) await item.run(() => undefined);
    else await runPlan(item.steps, item.concurrent);
  };
  if (!concurrent) {
    for (const item of items) await runItem(item);
    return;
  }
  for (const result of await Promise.allSettled(items.map(runItem))) {
    if (result.status === 'rejected') throw result.reason;
  }
}
