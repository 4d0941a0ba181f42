import { childrenOf, processMemory, processTimes } from './proc.js';

/** What one group of processes holds in memory. */
export interface GroupMemory {
  /** Sum of PSS where every process tells it, else of RSS; bytes. */
  readonly bytes: number;
  readonly kind: 'PSS' | 'RSS';
}

/**
 * CPU time and memory of the processes that do one job ("worker", "postgres"), also of those that
 * were killed and replaced: what was seen of a process before its end is kept.
 */
export class ProcessGroup {
  /** CPU time of each root and everything below it, by number and start time of the root. */
  #seen = new Map<string, number>();
  #retiredMs = 0;
  #peakRss = 0;

  readonly #watched: number[] = [];

  /**
   * @param roots the group's processes now.
   * @param reach whether what these started counts too; not for the bench, which started everything.
   */
  constructor(
    private readonly roots: () => readonly number[],
    private readonly reach: 'with children' | 'alone',
  ) {}

  /** Adds a process for its life. */
  watch(pid: number): void {
    this.#watched.push(pid);
  }

  /**
   * CPU time of the group since its processes started, ms. A process that is killed loses what it
   * did since the last look: look right before a kill.
   */
  cpuMs(): number {
    const now = new Map<string, number>();
    for (const root of [...this.roots(), ...this.#watched]) {
      const times = processTimes(root);
      if (times === null) continue;
      // What a child did that has ended is in the reaped time of whoever started it.
      const below = this.reach === 'alone' ? 0 : times.reapedMs + sumTimes(descendants(root));
      now.set(`${root}/${times.startTicks}`, times.ownMs + below);
    }
    for (const [key, ms] of this.#seen) if (!now.has(key)) this.#retiredMs += ms;
    this.#seen = now;
    return this.#retiredMs + [...now.values()].reduce((sum, ms) => sum + ms, 0);
  }

  /** Memory now. Slow with `withPss`: not during a measured second. Null: this system does not tell. */
  memory(withPss: boolean): GroupMemory | null {
    const all = this.#pids().flatMap((pid) => processMemory(pid, withPss) ?? []);
    if (all.length === 0) return null;
    let pss = 0;
    for (const memory of all) {
      if (memory.pss === null) return { bytes: all.reduce((sum, each) => sum + each.rss, 0), kind: 'RSS' };
      pss += memory.pss;
    }
    return { bytes: pss, kind: 'PSS' };
  }

  /** The largest peak of resident bytes that one process of the group has reached so far; 0: unknown. */
  peakRss(): number {
    for (const pid of this.#pids()) {
      this.#peakRss = Math.max(this.#peakRss, processMemory(pid, false)?.peakRss ?? 0);
    }
    return this.#peakRss;
  }

  #pids(): number[] {
    const roots = this.roots();
    return this.reach === 'alone' ? [...roots] : roots.flatMap((root) => [root, ...descendants(root)]);
  }
}

function sumTimes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const times = processTimes(pid);
    return times === null ? sum : sum + times.ownMs + times.reapedMs;
  }, 0);
}

function descendants(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendants(child)]);
}
