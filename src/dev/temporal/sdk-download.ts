import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Downloader } from './binary-resolver.js';
import { StackError } from '../stack-error.js';

const WITHIN_MS = 180_000;

/**
 * Lets the Temporal SDK download the program from Temporal's own site, the last way. The SDK can
 * only download by starting a server and gives that five seconds: the download counts, a server
 * that did not come up in time does not.
 */
export const downloadWithSdk: Downloader = async ({ program, settings, into }, context) => {
  // Loaded here alone: it brings the SDK's native core, which nothing else in this program needs.
  const { TestWorkflowEnvironment } = await import('@temporalio/testing');
  const executable = { type: 'cached-download', downloadDir: into, version: `v${settings.version}` } as const;
  context.report(`downloading ${program} ${settings.version} through the Temporal SDK, once`);
  const started =
    program === 'temporal'
      ? TestWorkflowEnvironment.createLocal({ server: { executable, ip: '127.0.0.1' } })
      : TestWorkflowEnvironment.createTimeSkipping({ server: { executable } });
  const outcome = await Promise.race([
    started.then(
      async (environment) => {
        await environment.teardown();
        return 'the SDK left no program';
      },
      (error: unknown) => (error instanceof Error ? rootCause(error).message : String(error)),
    ),
    new Promise<string>((resolve) => {
      setTimeout(() => resolve(`it did not end within ${WITHIN_MS / 1_000} s`), WITHIN_MS).unref();
    }),
  ]);
  const file = readdirSync(into).find((name) => name.startsWith(program) && !name.endsWith('.downloading'));
  if (file === undefined) throw new StackError(outcome);
  return join(into, file);
};

function rootCause(error: Error): Error {
  return error.cause instanceof Error ? rootCause(error.cause) : error;
}
