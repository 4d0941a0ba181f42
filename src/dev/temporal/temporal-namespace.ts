import { Connection } from '@temporalio/client';
import { until } from '../pacing.js';
import { StackError } from '../stack-error.js';
import type { StackSettings } from '../stack-settings.js';

const CALL_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 15_000;
const SECONDS_PER_DAY = 86_400;
// Numbers of the protocol (temporal.api.enums.v1.IndexedValueType).
const ATTRIBUTE_TYPES = { Text: 1, Keyword: 2, Int: 3, Double: 4, Bool: 5, Datetime: 6 } as const;
/** gRPC's number for ALREADY_EXISTS. */
const ALREADY_EXISTS = 6;

function lazyConnection(address: string): Connection {
  // A proxy of the environment must not get in between: the server is on this machine.
  return Connection.lazy({ address, channelArgs: { 'grpc.enable_http_proxy': 0 } });
}

async function withDeadline<T>(connection: Connection, call: () => Promise<T>): Promise<T> {
  return connection.withDeadline(Date.now() + CALL_WITHIN_MS, call);
}

/** The Temporal server and namespace that a stack works with. */
export interface TemporalTarget {
  readonly address: string;
  readonly namespace: string;
  /** False: somebody else runs it, and only what the product needs is changed there. */
  readonly isOurs: boolean;
}

/** The server that TEMPORAL_ADDRESS (and TEMPORAL_NAMESPACE) names, or null. */
export function foreignTemporal(
  env: NodeJS.ProcessEnv,
  settings: StackSettings['temporal'],
): TemporalTarget | null {
  const address = env['TEMPORAL_ADDRESS'];
  if (!address) return null;
  return { address, namespace: env['TEMPORAL_NAMESPACE'] || settings.namespace, isOurs: false };
}

/** Waits until the server answers for the namespace; its Web UI answers earlier and proves nothing. */
export async function namespaceAnswers(target: TemporalTarget, signal: AbortSignal): Promise<void> {
  const connection = lazyConnection(target.address);
  const { namespace } = target;
  try {
    await until(async () => {
      try {
        await withDeadline(connection, () => connection.workflowService.describeNamespace({ namespace }));
        return true;
      } catch {
        return false; // Not up, or the namespace is still being made: the caller's limit decides.
      }
    }, signal);
  } finally {
    await connection.close();
  }
}

/**
 * Sets what the command line of the server cannot: the retention of our own server, the search
 * attributes of one that is not ours. Twice changes nothing.
 * @throws StackError when the namespace does not answer or refuses.
 */
export async function prepareNamespace(
  target: TemporalTarget,
  settings: StackSettings['temporal'],
  signal: AbortSignal,
): Promise<void> {
  const limit = AbortSignal.timeout(ANSWER_WITHIN_MS);
  try {
    await namespaceAnswers(target, AbortSignal.any([signal, limit]));
  } catch (error) {
    signal.throwIfAborted();
    if (!limit.aborted) throw error;
    throw new StackError(
      `Temporal at ${target.address} does not answer for namespace ${target.namespace}. ` +
        'Start it, or unset TEMPORAL_ADDRESS to use a server of our own.',
    );
  }
  const connection = lazyConnection(target.address);
  try {
    if (target.isOurs) await setRetention(connection, target.namespace, settings.retention_days);
    await addSearchAttributes(connection, target.namespace, settings.search_attributes);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StackError(
      `Temporal at ${target.address} refuses settings of namespace ${target.namespace}: ${reason}.`,
    );
  } finally {
    await connection.close();
  }
}

async function setRetention(connection: Connection, namespace: string, days: number): Promise<void> {
  const workflowExecutionRetentionTtl = { seconds: (days * SECONDS_PER_DAY) as never };
  await withDeadline(connection, () =>
    connection.workflowService.updateNamespace({ namespace, config: { workflowExecutionRetentionTtl } }),
  );
}

async function addSearchAttributes(
  connection: Connection,
  namespace: string,
  wanted: StackSettings['temporal']['search_attributes'],
): Promise<void> {
  const operator = connection.operatorService;
  const known = await withDeadline(connection, () => operator.listSearchAttributes({ namespace }));
  const missing = Object.entries(wanted).filter(([name]) => known.customAttributes?.[name] === undefined);
  if (missing.length === 0) return;
  const searchAttributes = Object.fromEntries(missing.map(([name, type]) => [name, ATTRIBUTE_TYPES[type]]));
  try {
    await withDeadline(connection, () => operator.addSearchAttributes({ namespace, searchAttributes }));
  } catch (error) {
    // Another stack on the same server was quicker.
    if ((error as { code?: unknown }).code !== ALREADY_EXISTS) throw error;
  }
}
