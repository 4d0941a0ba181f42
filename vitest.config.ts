import { defineConfig } from 'vitest/config';

/** One project per tier; the tier's folder is its name. */
const tier = (name: string, extra: Record<string, unknown> = {}) => ({
  extends: true as const,
  test: { name, include: [`test/${name}/**/*.test.ts`], ...extra },
});
const slow = { testTimeout: 60_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
    environment: 'node',
    // Worker threads crash with Temporal's native core.
    pool: 'forks',
    maxWorkers: 2,
    setupFiles: ['reflect-metadata'],
    projects: [
      tier('unit'),
      tier('replay', slow),
      // The time-skipping server's clock is global: one file after the other.
      tier('workflow', { ...slow, fileParallelism: false }),
      tier('integration', { ...slow, globalSetup: ['test/support/postgres.setup.ts'] }),
      tier('e2e', { testTimeout: 120_000, hookTimeout: 180_000, fileParallelism: false }),
    ],
  },
});
