/**
 * A whole stack for end-to-end and chaos tests: every process, free ports, a temporary folder. The
 * build must be current (`npm test` sees to it).
 *
 * ```ts
 * const stack = await startStack({ workers: 2, env: { PAYMENTS_LADDER_DIVISOR: '60' } });
 * await stack.kill('worker-2');
 * await stack.restart('worker-2');
 * await stack.stop();
 * ```
 */
export { startTemporaryStack as startStack } from '../../src/dev/temporary-stack.js';
export type { TemporaryStack, TemporaryStackOptions } from '../../src/dev/temporary-stack.js';
