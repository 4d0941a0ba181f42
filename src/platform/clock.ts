/** Milliseconds of a clock that never jumps; only differences mean something. */
export function monotonicMs(): number {
  return performance.now();
}

/** This process's idea of the time, epoch milliseconds. May be wrong: nothing is guarded by it alone. */
export function wallMs(): number {
  return Date.now();
}

/** Resolves after `ms` (clamped to 0 and up). The timer does not keep the process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref();
  });
}
