import type { CallOperation, FaultKind } from './fault.js';
import { paymentIdOf } from './payout-book.js';

/** One request that reached the provider port, also those that were refused, replayed or disturbed. */
export interface SeenRequest {
  /** Arrival: epoch milliseconds of the wall clock, with microseconds in the fraction. */
  readonly receivedAt: number;
  /** null: no call of the protocol (unknown path, unreadable). */
  readonly operation: CallOperation | null;
  readonly method: string;
  readonly path: string;
  /** Empty when the request named none. */
  readonly reference: string;
  readonly key: string | null;
  fault: FaultKind;
  /** Status of the answer; null while unanswered or when the connection was cut instead. */
  httpStatus: number | null;
  replayed: boolean;
}

/** The newest requests, at most `capacity`; older ones are overwritten. */
export class RequestLog {
  private readonly ring: SeenRequest[] = [];
  private next = 0;
  /** All requests since the start or the last reset, also those overwritten. */
  total = 0;

  constructor(private readonly capacity: number) {}

  add(request: SeenRequest): void {
    this.ring[this.next] = request;
    this.next = (this.next + 1) % this.capacity;
    this.total += 1;
  }

  /** Oldest first. @param reference a payment id or a full reference; null: all. */
  list(reference: string | null): SeenRequest[] {
    const ordered = [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)];
    if (reference === null) return ordered;
    return ordered.filter((r) => r.reference === reference || paymentIdOf(r.reference) === reference);
  }

  clear(): void {
    this.ring.length = 0;
    this.next = 0;
    this.total = 0;
  }
}
