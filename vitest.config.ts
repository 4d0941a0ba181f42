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
    // Two cores are what every machine has. More files at once would share them and run into time-outs.
    maxWorkers: 2,
    setupFiles: ['reflect-metadata'],
    projects: [
      // Some start programs of their own, which takes seconds on a busy machine.
      tier('unit', { testTimeout: 20_000, hookTimeout: 20_000 }),
      tier('replay', slow),
      // The time-skipping server's clock is global: one file after the other.
      tier('workflow', { ...slow, fileParallelism: false }),
      // A database per file: two files at once do not meet.
      tier('integration', { ...slow, globalSetup: ['test/support/postgres.setup.ts'] }),
      // Stand-ins of Stripe that nobody here wrote; `npm run test:fakes` starts them. Without them it skips.
      tier('fakes', { ...slow, fileParallelism: false }),
      // The real provider's test mode; without a key it skips, and says so.
      tier('contract', { ...slow, fileParallelism: false }),
      // A whole stack per file: two of them starve each other of the time that due payments need.
      tier('e2e', { testTimeout: 120_000, hookTimeout: 180_000, fileParallelism: false }),
    ],
  },
});
