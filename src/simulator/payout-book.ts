/**
 * Everything the simulated provider knows, as the sum of its ledger's records. The live process
 * and a restart build it by the same `apply`, so a restart forgets nothing that was written.
 */

export type PayoutStatus = 'requires_commit' | 'pending' | 'succeeded' | 'failed';

/** How a pending payout ends. Neither time nor lookups: it stays pending for ever. */
export interface PendingEnd {
  readonly status: 'succeeded' | 'failed';
  readonly failureCode: string | null;
  /** Epoch milliseconds from which it is final. */
  readonly atMs: number | null;
  /** Lookups that still see it pending; counted in memory, a restart counts anew. */
  readonly afterLookups: number | null;
}

export interface Payout {
  readonly id: string;
  readonly account: string;
  readonly reference: string;
  /** Whole minor units. */
  readonly amount: number;
  readonly currency: string;
  readonly destination: string;
  readonly description: string | null;
  readonly clientReference: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly status: PayoutStatus;
  readonly failureCode: string | null;
  readonly end: PendingEnd | null;
}

/** One movement of money. The list of these is the judge of "once" and of "not early". */
export interface Charge {
  readonly payoutId: string;
  readonly key: string | null;
  /** Arrival of the request that moved the money: epoch milliseconds with microseconds. */
  readonly receivedAt: number;
}

/** The first answer under an idempotency key. */
export interface StoredAnswer {
  readonly account: string;
  readonly key: string;
  /** Digest of endpoint and parameters. */
  readonly fingerprint: string;
  /** Epoch milliseconds of the key's first use. */
  readonly at: number;
  readonly status: number;
  readonly body: string;
}

/** One line of the ledger: all effects of one request, so that no crash can split them. */
export type LedgerRecord =
  | {
      readonly type: 'executed';
      readonly payout?: Payout;
      readonly charge?: Charge;
      readonly answer?: StoredAnswer;
    }
  | {
      readonly type: 'ended';
      readonly id: string;
      readonly status: PayoutStatus;
      readonly failureCode: string | null;
    }
  | { readonly type: 'expected'; readonly times: Readonly<Record<string, number>> }
  | { readonly type: 'reset' };

/** Our references are `<payment id>/<generation>`; all generations of a payment count together. */
export function paymentIdOf(reference: string): string {
  const slash = reference.indexOf('/');
  return slash < 0 ? reference : reference.slice(0, slash);
}

export class PayoutBook {
  private payouts = new Map<string, Payout>();
  private idsByReference = new Map<string, string[]>();
  private answers = new Map<string, StoredAnswer>();
  private chargesByPayment = new Map<string, Charge[]>();
  private expectedAt = new Map<string, number>();

  apply(record: LedgerRecord): void {
    switch (record.type) {
      case 'executed':
        if (record.payout) this.put(record.payout);
        if (record.charge) this.count(record.charge);
        if (record.answer) this.answers.set(scoped(record.answer.account, record.answer.key), record.answer);
        return;
      case 'ended':
        this.put({
          ...this.required(record.id),
          status: record.status,
          failureCode: record.failureCode,
          end: null,
        });
        return;
      case 'expected':
        for (const [paymentId, at] of Object.entries(record.times)) this.expectedAt.set(paymentId, at);
        return;
      case 'reset':
        this.payouts.clear();
        this.idsByReference.clear();
        this.answers.clear();
        this.chargesByPayment.clear();
        this.expectedAt.clear();
        return;
      default:
        throw new Error('The ledger holds a record of an unknown type; it was written by another version.');
    }
  }

  payout(account: string, id: string): Payout | undefined {
    const payout = this.payouts.get(id);
    return payout?.account === account ? payout : undefined;
  }

  /** Oldest first; usually one or none. */
  payoutsOf(account: string, reference: string): readonly Payout[] {
    const ids = this.idsByReference.get(scoped(account, reference)) ?? [];
    return ids.map((id) => this.required(id));
  }

  storedAnswer(account: string, key: string): StoredAnswer | undefined {
    return this.answers.get(scoped(account, key));
  }

  /** The provider forgets a key at the end of its life. */
  forgetKey(account: string, key: string): void {
    this.answers.delete(scoped(account, key));
  }

  /** Every movement, payment by payment in the order of their first charge. */
  *charges(): Generator<readonly [paymentId: string, charges: readonly Charge[]]> {
    yield* this.chargesByPayment;
  }

  /** Payments with at least one charge, also a failed one. */
  get paymentCount(): number {
    return this.chargesByPayment.size;
  }

  chargesOf(paymentId: string): readonly Charge[] {
    return this.chargesByPayment.get(paymentId) ?? [];
  }

  /** The time before which the payment must not be charged, epoch milliseconds; if registered. */
  expectedTime(paymentId: string): number | undefined {
    return this.expectedAt.get(paymentId);
  }

  /** @throws Error when the id is unknown: then the ledger contradicts itself. */
  required(id: string): Payout {
    const payout = this.payouts.get(id);
    if (!payout) throw new Error(`The ledger names payout ${id} but never made it.`);
    return payout;
  }

  private put(payout: Payout): void {
    if (!this.payouts.has(payout.id)) {
      append(this.idsByReference, scoped(payout.account, payout.reference), payout.id);
    }
    this.payouts.set(payout.id, payout);
  }

  private count(charge: Charge): void {
    append(this.chargesByPayment, paymentIdOf(this.required(charge.payoutId).reference), charge);
  }
}

function scoped(account: string, name: string): string {
  return `${account}\n${name}`;
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
