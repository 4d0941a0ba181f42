import type { Charge, Payout, PayoutBook, PayoutStatus } from './payout-book.js';

/** One movement of money as the control port shows it. */
export interface ChargeView {
  readonly reference: string;
  readonly payoutId: string;
  readonly key: string | null;
  /** Whole minor units. */
  readonly amount: number;
  readonly currency: string;
  readonly destination: string;
  /** Arrival of the request that moved it: epoch ms of the simulator's wall clock, with microseconds. */
  readonly receivedAt: number;
  /** `failed`: the money did not arrive after all; it counts as no movement. */
  readonly status: PayoutStatus;
  /** The money came back later, whole or in part. It was moved all the same. */
  readonly returned: boolean;
}

const COLUMNS = [
  'reference',
  'payoutId',
  'key',
  'amount',
  'currency',
  'destination',
  'receivedAt',
  'status',
  'returned',
] as const satisfies readonly (keyof ChargeView)[];

/**
 * What was really paid: the judge of "once" and of "not early". Only this counts; what a payment
 * system believes does not.
 */
export class LedgerReport {
  /** @param current the payout as it is now: one whose pending time is over has ended. */
  constructor(
    private readonly book: PayoutBook,
    private readonly current: (payout: Payout) => Payout,
  ) {}

  /** `count`: movements that did not fail, over all generations of the payment. */
  ofPayment(paymentId: string): { readonly count: number; readonly charges: readonly ChargeView[] } {
    const charges = this.book.chargesOf(paymentId).map((charge) => this.view(charge));
    return { count: moved(charges), charges };
  }

  /** All movements in columns, and every payment that was paid more than once. */
  all(): unknown {
    const rows: unknown[][] = [];
    const duplicates: { paymentId: string; count: number }[] = [];
    let count = 0;
    for (const [paymentId, charges] of this.book.charges()) {
      const views = charges.map((charge) => this.view(charge));
      const times = moved(views);
      count += times;
      if (times > 1) duplicates.push({ paymentId, count: times });
      for (const view of views) rows.push(COLUMNS.map((column) => view[column]));
    }
    return { count, payments: this.book.paymentCount, duplicates, columns: COLUMNS, rows };
  }

  /** Movements whose request arrived before the registered time. `unregistered`: could not be judged. */
  early(): unknown {
    const charges: (ChargeView & { expectedAt: number })[] = [];
    let unregistered = 0;
    for (const [paymentId, list] of this.book.charges()) {
      const expectedAt = this.book.expectedTime(paymentId);
      if (expectedAt === undefined) {
        unregistered += list.length;
        continue;
      }
      for (const charge of list) {
        if (charge.receivedAt < expectedAt) charges.push({ ...this.view(charge), expectedAt });
      }
    }
    return { count: charges.length, unregistered, charges };
  }

  private view({ payoutId, key, receivedAt }: Charge): ChargeView {
    const payout = this.current(this.book.required(payoutId));
    const { reference, amount, currency, destination, status } = payout;
    const returned = payout.returned?.at != null;
    return { reference, payoutId, key, amount, currency, destination, receivedAt, status, returned };
  }
}

function moved(charges: readonly ChargeView[]): number {
  return charges.filter((charge) => charge.status !== 'failed').length;
}
