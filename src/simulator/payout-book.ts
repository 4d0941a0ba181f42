import type { AccountSwitches } from './account.js';
import type { WebhookEndpoint } from './webhooks/webhook-endpoint.js';

/**
 * Everything the simulated provider knows, as the sum of its ledger's records. The live process
 * and a restart build it by the same `apply`, so a restart forgets nothing that was written.
 */

export type PayoutStatus = 'requires_commit' | 'pending' | 'succeeded' | 'failed' | 'cancelled';

/** How a pending payout ends. Neither time nor lookups: it stays pending for ever. */
export interface PendingEnd {
  readonly status: 'succeeded' | 'failed';
  readonly failureCode: string | null;
  /** Epoch milliseconds of the virtual clock from which it is final. */
  readonly atMs: number | null;
  /** Lookups that still see it pending; counted in memory, a restart counts anew. */
  readonly afterLookups: number | null;
}

/** The money comes back: planned at first, `at` is set once it has. */
export interface PayoutReturn {
  readonly id: string;
  readonly code: string;
  /** Whole minor units; at most what was paid. */
  readonly amount: number;
  /** Epoch milliseconds of the virtual clock from which it has come back. */
  readonly dueAt: number;
  /** Epoch milliseconds of the virtual clock; null: not yet. */
  readonly at: number | null;
}

/** Which of the provider's products a payout is; its answers look different in each. */
export type PayoutForm = 'payout' | 'transfer' | 'payment_intent';

export interface Payout {
  readonly id: string;
  readonly account: string;
  readonly form: PayoutForm;
  readonly reference: string;
  /** Whole minor units. */
  readonly amount: number;
  readonly currency: string;
  readonly destination: string;
  readonly description: string | null;
  readonly clientReference: string | null;
  /** What only one form has, as the client gave it. */
  readonly details: Readonly<Record<string, unknown>> | null;
  /** The idempotency key header of the request that made it, also where it is ignored. */
  readonly key: string | null;
  /** Epoch milliseconds of the virtual clock. */
  readonly createdAt: number;
  /** When the money was sent off: epoch milliseconds of the virtual clock; null: never. */
  readonly movedAt: number | null;
  readonly status: PayoutStatus;
  readonly failureCode: string | null;
  readonly end: PendingEnd | null;
  readonly returned: PayoutReturn | null;
}

/** One movement of money. The list of these is the judge of "once" and of "not early". */
export interface Charge {
  readonly payoutId: string;
  readonly key: string | null;
  /** Arrival of the request that moved the money: epoch ms of the wall clock, with microseconds. */
  readonly receivedAt: number;
}

/** The first answer under an idempotency key. */
export interface StoredAnswer {
  readonly account: string;
  /** Set where keys belong to the bearer key instead of the account. */
  readonly credential?: string;
  readonly key: string;
  /** Digest of endpoint and parameters. */
  readonly fingerprint: string;
  /** Epoch milliseconds of the virtual clock at the key's first use. */
  readonly at: number;
  readonly status: number;
  readonly body: string;
}

/** Where an idempotency key is known. */
export type KeyScope = Pick<StoredAnswer, 'account' | 'credential'>;

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
  | { readonly type: 'returned'; readonly id: string; readonly returned: PayoutReturn }
  | { readonly type: 'expected'; readonly times: Readonly<Record<string, number>> }
  | { readonly type: 'advanced'; readonly offsetMs: number }
  | { readonly type: 'switched'; readonly account: string; readonly switches: Partial<AccountSwitches> }
  | { readonly type: 'endpoint'; readonly account: string; readonly endpoint: WebhookEndpoint | null }
  | { readonly type: 'reset' };

/** Our references are `<payment id>/<generation>`; all generations of a payment count together. */
export function paymentIdOf(reference: string): string {
  const slash = reference.indexOf('/');
  return slash < 0 ? reference : reference.slice(0, slash);
}

export class PayoutBook {
  private payouts = new Map<string, Payout>();
  private idsByReference = new Map<string, string[]>();
  private idsByAccount = new Map<string, string[]>();
  private answers = new Map<string, StoredAnswer>();
  private chargesByPayment = new Map<string, Charge[]>();
  private expectedAt = new Map<string, number>();
  private switches = new Map<string, Partial<AccountSwitches>>();
  private endpoints = new Map<string, WebhookEndpoint | null>();
  /** Milliseconds that the control port has added to the provider's clock. */
  clockOffsetMs = 0;

  apply(record: LedgerRecord): void {
    switch (record.type) {
      case 'executed':
        if (record.payout) this.put({ ...LATER_MEMBERS, ...record.payout });
        if (record.charge) this.count(record.charge);
        if (record.answer) this.answers.set(keyName(record.answer, record.answer.key), record.answer);
        return;
      case 'ended': {
        const { status, failureCode } = record;
        this.put({ ...this.required(record.id), status, failureCode, end: null });
        return;
      }
      case 'returned':
        this.put({ ...this.required(record.id), returned: record.returned });
        return;
      case 'expected':
        for (const [paymentId, at] of Object.entries(record.times)) this.expectedAt.set(paymentId, at);
        return;
      case 'advanced':
        this.clockOffsetMs = record.offsetMs;
        return;
      case 'switched':
        this.switches.set(record.account, { ...this.switches.get(record.account), ...record.switches });
        return;
      case 'endpoint':
        this.endpoints.set(record.account, record.endpoint);
        return;
      case 'reset':
        this.clear();
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

  /** Every payout of an account in the order in which they were made. */
  *payoutsIn(account: string): Generator<Payout> {
    for (const id of this.idsByAccount.get(account) ?? []) yield this.required(id);
  }

  /** Every payout of every account. */
  allPayouts(): Iterable<Payout> {
    return this.payouts.values();
  }

  storedAnswer(scope: KeyScope, key: string): StoredAnswer | undefined {
    return this.answers.get(keyName(scope, key));
  }

  /** The provider forgets a key at the end of its life. */
  forgetKey(scope: KeyScope, key: string): void {
    this.answers.delete(keyName(scope, key));
  }

  /** What the control port has changed for an account; empty: nothing. */
  switchesOf(account: string): Partial<AccountSwitches> {
    return this.switches.get(account) ?? {};
  }

  /** What the control port has set for an account: null: its events go nowhere. undefined: nothing set. */
  endpointOf(account: string): WebhookEndpoint | null | undefined {
    return this.endpoints.get(account);
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
      append(this.idsByAccount, payout.account, payout.id);
    }
    this.payouts.set(payout.id, payout);
  }

  private count(charge: Charge): void {
    append(this.chargesByPayment, paymentIdOf(this.required(charge.payoutId).reference), charge);
  }

  private clear(): void {
    this.payouts.clear();
    this.idsByReference.clear();
    this.idsByAccount.clear();
    this.answers.clear();
    this.chargesByPayment.clear();
    this.expectedAt.clear();
    this.switches.clear();
    this.endpoints.clear();
    this.clockOffsetMs = 0;
  }
}

/** Members that ledgers of the first release lack. */
const LATER_MEMBERS = Object.freeze({
  form: 'payout',
  details: null,
  key: null,
  movedAt: null,
  returned: null,
});

function scoped(account: string, name: string): string {
  return `${account}\n${name}`;
}

function keyName({ account, credential }: KeyScope, key: string): string {
  return `${account}\n${credential ?? ''}\n${key}`;
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
