import { Connection } from '@temporalio/client';
import type { Config } from '../config/config.js';

/** Temporal as seen from here. */
export type TemporalProbe =
  | { readonly kind: 'ok' }
  /** The server answers and has no such namespace. */
  | { readonly kind: 'no_namespace' }
  /** Nobody answered within the limit; `reason` is a word of gRPC, such as UNAVAILABLE. */
  | { readonly kind: 'unreachable'; readonly reason: string };

/** gRPC status codes by number (google.rpc.Code). */
const NOT_FOUND = 5;
const WORDS: Readonly<Record<number, string>> = Object.freeze({
  4: 'DEADLINE_EXCEEDED',
  7: 'PERMISSION_DENIED',
  14: 'UNAVAILABLE',
  16: 'UNAUTHENTICATED',
});

/**
 * Asks Temporal for its namespace once. Changes nothing; throws nothing.
 * @param limitMs how long to wait for connection and answer together.
 */
export async function probeTemporal(config: Config['temporal'], limitMs: number): Promise<TemporalProbe> {
  const connection = Connection.lazy({
    address: config.address,
    tls: config.tls ?? false,
    connectTimeout: limitMs,
  });
  try {
    await connection.withDeadline(Date.now() + limitMs, () =>
      connection.workflowService.describeNamespace({ namespace: config.namespace }),
    );
    return { kind: 'ok' };
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === NOT_FOUND) return { kind: 'no_namespace' };
    return { kind: 'unreachable', reason: WORDS[Number(code)] ?? 'no connection' };
  } finally {
    await connection.close();
  }
}
