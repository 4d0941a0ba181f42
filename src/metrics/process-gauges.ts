import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics } from 'prom-client';
import type { Database } from '../persistence/database.js';
import { registry } from './instruments.js';
import { eventLoopDelaySeconds, poolConnections } from './metrics.js';

/** Fine enough for lateness of a millisecond, coarse enough to cost nothing (ms). */
const LOOP_RESOLUTION_MS = 10;
const REFRESH_MS = 5_000;
const NANOSECONDS = 1e9;

/**
 * Starts the gauges of this process: memory, CPU, the event loop's delay and the pool.
 * @returns a function that stops them. Call it once per process: names would clash.
 */
export function startProcessGauges(database: Database): () => void {
  collectDefaultMetrics({ register: registry, prefix: 'payments_' });
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  const refresh = (): void => {
    // The histogram counts the sampling interval itself.
    const delay = (ns: number): number => Math.max(0, ns / NANOSECONDS - LOOP_RESOLUTION_MS / 1_000);
    eventLoopDelaySeconds.set({ quantile: '0.5' }, delay(loop.percentile(50)));
    eventLoopDelaySeconds.set({ quantile: '0.99' }, delay(loop.percentile(99)));
    eventLoopDelaySeconds.set({ quantile: '1' }, delay(loop.max));
    loop.reset();
    const { total, idle, waiting } = database.connections();
    poolConnections.set({ state: 'used' }, total - idle);
    poolConnections.set({ state: 'idle' }, idle);
    poolConnections.set({ state: 'waiting' }, waiting);
  };
  const timer = setInterval(refresh, REFRESH_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    loop.disable();
  };
}
