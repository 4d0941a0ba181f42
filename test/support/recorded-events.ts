import type { SubmissionEvents } from '../../src/submission/submission-events.js';
import type { RelayEvents } from '../../src/outbox/outbox-relay.js';

type All = SubmissionEvents & RelayEvents;
type Name = keyof All;

export interface RecordedEvent {
  readonly name: Name;
  readonly args: readonly unknown[];
}

/** What a worker told, in order. */
export class RecordedEvents {
  readonly list: RecordedEvent[] = [];
  readonly sink: All;

  constructor() {
    const names: Readonly<Record<Name, true>> = {
      moved: true,
      gateLost: true,
      callStarted: true,
      callEnded: true,
      earlyRefusal: true,
      prepareFailed: true,
      leaseLost: true,
      lateAnswer: true,
      contradiction: true,
      woken: true,
      restarted: true,
      skew: true,
      fault: true,
      published: true,
    };
    const sink: Partial<Record<Name, (...args: unknown[]) => void>> = {};
    for (const name of Object.keys(names) as Name[]) {
      sink[name] = (...args) => void this.list.push({ name, args });
    }
    this.sink = sink as unknown as All;
  }

  of(name: Name): readonly RecordedEvent[] {
    return this.list.filter((event) => event.name === name);
  }

  count(name: Name): number {
    return this.of(name).length;
  }
}
