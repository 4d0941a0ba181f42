import type { History } from '@temporalio/common/lib/proto-utils.js';

/** One event of a workflow's history, easier to read than the protocol's. */
export interface RigEvent {
  readonly id: string;
  /** As in the protocol, such as `timerStarted`. */
  readonly name: string;
  /** On the server's clock. */
  readonly atMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** The events of a history in their order. @throws Error for an event without attributes. */
export function rigEvents(history: History): readonly RigEvent[] {
  return (history.events ?? []).map((event) => {
    const key = Object.keys(event).find((name) => name.endsWith('EventAttributes'));
    if (key === undefined) throw new Error(`event ${String(event.eventId)} has no attributes`);
    return {
      id: String(event.eventId),
      name: key.replace('EventAttributes', ''),
      atMs: Number(event.eventTime?.seconds ?? 0) * 1_000 + Math.floor((event.eventTime?.nanos ?? 0) / 1e6),
      attributes: (event as Record<string, unknown>)[key] as Record<string, unknown>,
    };
  });
}

/** Events that give the workflow something to do. */
const TELLING = new Set([
  'workflowExecutionStarted',
  'workflowExecutionSignaled',
  'workflowExecutionCancelRequested',
  'timerFired',
  'activityTaskCompleted',
]);

/** True when the workflow has handled everything that it was told so far, looks and cancels included. */
export function isSettled(events: readonly RigEvent[]): boolean {
  const names = events.map((event) => event.name);
  const task = names.findLastIndex((name) => name.startsWith('workflowTask'));
  const told = names.findLastIndex((name) => TELLING.has(name));
  const asking = unanswered(events, ['look', 'cancelPayment']);
  return names[task] === 'workflowTaskCompleted' && task > told && asking.length === 0;
}

/** The ids of the events that scheduled one of these activities. */
export function scheduled(events: readonly RigEvent[], types: readonly string[]): string[] {
  return events
    .filter(({ name, attributes }) => {
      const type = attributes['activityType'] as { name?: string } | undefined;
      return name === 'activityTaskScheduled' && types.includes(type?.name ?? '');
    })
    .map((event) => event.id);
}

/** Those of them whose result the server does not have yet. */
export function unanswered(events: readonly RigEvent[], types: readonly string[]): string[] {
  const results = new Set(
    events
      .filter((event) => event.name === 'activityTaskCompleted')
      .map((event) => String(event.attributes['scheduledEventId'])),
  );
  return scheduled(events, types).filter((id) => !results.has(id));
}

/** Decodes every payload below a value of the protocol. */
export function payloadsIn(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('metadata' in value && 'data' in value && value.data instanceof Uint8Array) {
    return [JSON.parse(new TextDecoder().decode(value.data)) as unknown];
  }
  return Object.values(value).flatMap(payloadsIn);
}
