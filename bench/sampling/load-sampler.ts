import type { GroupMemory, ProcessGroup } from './process-group.js';
import { loadAverage, machineTimes } from './proc.js';

/** Ticks of /proc are 10 ms, so shorter steps would show noise. */
const LOOK_EVERY_MS = 1_000;

/** CPU times at one moment, all counted from some earlier moment; only differences mean something. */
export interface LoadMark {
  readonly atMs: number;
  readonly cpuMs: Readonly<Record<string, number>>;
  /** Null: this system has no /proc. */
  readonly busyMs: number | null;
  readonly stolenMs: number | null;
}

/** What happened between two marks. */
export interface LoadShare {
  readonly seconds: number;
  /** CPU time by group, ms. */
  readonly cpuMs: Readonly<Record<string, number>>;
  /** Cores that processes other than ours kept busy, mean and largest of a second; null: not known. */
  readonly foreignCores: number | null;
  readonly foreignCoresMost: number | null;
  /** Cores that the host of a virtual machine took away, mean. */
  readonly stolenCores: number | null;
  /** Load average of the last minute at both ends. */
  readonly loadAverage: readonly [number | null, number | null];
}

/**
 * CPU by group of processes, and what everybody else on this machine used meanwhile: the figure
 * that says whether a measurement is worth anything.
 */
export class LoadSampler {
  readonly #groups: ReadonlyMap<string, ProcessGroup>;
  readonly #timer: NodeJS.Timeout;
  #marks: LoadMark[] = [];
  #loads = new Map<LoadMark, number | null>();

  /** @param groups every process that the bench started must be in one, and the bench itself. */
  constructor(groups: Readonly<Record<string, ProcessGroup>>) {
    this.#groups = new Map(Object.entries(groups));
    this.#timer = setInterval(() => this.mark(), LOOK_EVERY_MS);
    this.#timer.unref();
    this.mark();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  mark(): LoadMark {
    const machine = machineTimes();
    const mark: LoadMark = {
      atMs: performance.now(),
      cpuMs: Object.fromEntries([...this.#groups].map(([name, group]) => [name, group.cpuMs()])),
      busyMs: machine?.busyMs ?? null,
      stolenMs: machine?.stolenMs ?? null,
    };
    this.#marks.push(mark);
    this.#loads.set(mark, loadAverage());
    return mark;
  }

  /** Adds a process to a group, e.g. one that sends load; it may end at any time. */
  watch(group: string, pid: number): void {
    this.#groups.get(group)?.watch(pid);
  }

  /** What happened between two marks of this sampler. */
  between(from: LoadMark, to: LoadMark): LoadShare {
    const seconds = (to.atMs - from.atMs) / 1_000;
    const steps = this.#marks.filter((mark) => mark.atMs > from.atMs && mark.atMs < to.atMs);
    const longEnough = [from, ...steps, to].reduce<LoadMark[]>((kept, mark) => {
      const last = kept.at(-1);
      return last === undefined || mark.atMs - last.atMs >= LOOK_EVERY_MS * 0.9 ? [...kept, mark] : kept;
    }, []);
    const foreign = longEnough
      .slice(1)
      .map((mark, index) => foreignCores(longEnough[index] ?? from, mark))
      .filter((cores) => cores !== null);
    const stolen = from.stolenMs === null || to.stolenMs === null ? null : to.stolenMs - from.stolenMs;
    return {
      seconds,
      cpuMs: Object.fromEntries(
        [...this.#groups.keys()].map((name) => [name, (to.cpuMs[name] ?? 0) - (from.cpuMs[name] ?? 0)]),
      ),
      foreignCores: foreignCores(from, to),
      foreignCoresMost: foreign.length === 0 ? foreignCores(from, to) : Math.max(...foreign),
      stolenCores: stolen === null ? null : stolen / 1_000 / seconds,
      loadAverage: [this.#loads.get(from) ?? null, this.#loads.get(to) ?? null],
    };
  }

  /** Memory of every group now; see ProcessGroup.memory. */
  memory(withPss: boolean): Readonly<Record<string, GroupMemory | null>> {
    return Object.fromEntries([...this.#groups].map(([name, group]) => [name, group.memory(withPss)]));
  }

  /** Largest resident size that one process of each group has had, bytes. */
  peakRss(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#groups].map(([name, group]) => [name, group.peakRss()]));
  }
}

/** Kernel threads count as foreign too: the disk's work for us is among them. */
function foreignCores(from: LoadMark, to: LoadMark): number | null {
  if (from.busyMs === null || to.busyMs === null) return null;
  const sum = (mark: LoadMark): number => Object.values(mark.cpuMs).reduce((total, ms) => total + ms, 0);
  const foreignMs = to.busyMs - from.busyMs - (sum(to) - sum(from));
  return Math.max(0, foreignMs / (to.atMs - from.atMs));
}
