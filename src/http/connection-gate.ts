import { AsyncLocalStorage } from 'node:async_hooks';
import { DomainError } from '../domain/domain-error.js';
import type { AdmissionQueue, Urgency } from './admission-queue.js';

/** The urgency of the request that the current call works for. */
const current = new AsyncLocalStorage<Urgency>();

/** Runs the rest of a request, and all that it starts, under an urgency. */
export function withUrgency(urgency: Urgency, run: () => void): void {
  current.run(urgency, run);
}

/**
 * Stands before a pool: whoever works for a request gets a connection in the order of urgency, and work
 * of the process itself passes by.
 */
export class ConnectionGate {
  constructor(
    private readonly queue: AdmissionQueue,
    private readonly turnedAway: (urgency: Urgency) => void,
  ) {}

  /**
   * Waits for a turn.
   * @returns what gives the place back; call it once, when the connection is back.
   * @throws DomainError `overloaded` when the turn did not come: nothing was asked of Postgres.
   */
  enter(): (() => void) | Promise<() => void> {
    const urgency = current.getStore();
    if (urgency === undefined) return PASS;
    const leave = (): void => this.queue.leave(urgency);
    const admitted = this.queue.enter(urgency);
    if (admitted === true) return leave;
    return admitted.then((isAdmitted) => {
      if (isAdmitted) return leave;
      this.turnedAway(urgency);
      throw new DomainError('overloaded');
    });
  }
}

const PASS = (): void => undefined;
