import type { WebhookFaultKind } from '../fault.js';
import { paymentIdOf } from '../payout-book.js';

/** One request to a client's endpoint, or an event that was kept from it. */
export interface Delivery {
  readonly eventId: string;
  readonly type: string;
  readonly account: string;
  /** Of the payout that the news is about, also where a stray event names another. */
  readonly reference: string;
  readonly fault: WebhookFaultKind;
  /** true: not the event itself but what a fault put before it. */
  readonly stray: boolean;
  /** From 1; 0: dropped, nothing was sent. */
  readonly attempt: number;
  /** Epoch milliseconds of the wall clock. */
  readonly sentAt: number;
  /** null: no answer (yet). */
  httpStatus: number | null;
  /** Why there is no answer; null: there is one, or it is still awaited. */
  error: string | null;
}

/** The newest deliveries, at most `capacity`; older ones are forgotten. */
export class DeliveryLog {
  private deliveries: Delivery[] = [];

  constructor(private readonly capacity: number) {}

  add(delivery: Delivery): Delivery {
    this.deliveries.push(delivery);
    // Cut rarely: moving the whole list for every delivery would cost more than the delivery.
    if (this.deliveries.length >= this.capacity * 2) this.deliveries = this.deliveries.slice(-this.capacity);
    return delivery;
  }

  /** Oldest first. @param reference a payment id or a full reference; null: all. */
  list(reference: string | null): readonly Delivery[] {
    return this.deliveries
      .slice(-this.capacity)
      .filter(
        (d) => reference === null || d.reference === reference || paymentIdOf(d.reference) === reference,
      );
  }

  clear(): void {
    this.deliveries = [];
  }
}
