import { hash, randomBytes } from 'node:crypto';
import { ABILITIES } from './account.js';
import type { AccountSwitches, SimulatedAccount } from './account.js';
import { errorAnswer, notFoundAnswer, payoutAnswer } from './payout-answer.js';
import type { Answer } from './payout-answer.js';
import type { KeyScope, LedgerRecord, Payout, PayoutBook, PendingEnd, StoredAnswer } from './payout-book.js';
import type { PayoutEnds } from './payout-ends.js';
import type { PayoutParameters } from './payout-parameters.js';

/** One request: who asks, under which key, and when it arrived (epoch ms, wall clock). */
export interface Call {
  readonly account: SimulatedAccount;
  /** The key header as it came, also where the profile ignores it. */
  readonly key: string | null;
  readonly receivedAt: number;
}

/** How an execution differs from the plain success; nothing set: it does not. */
export interface Variant {
  /** Refuse with 402 and this code, stored under the key; nothing moves. */
  readonly declineCode: string | null;
  /** The money is on its way instead of there; an end that has passed already is final at once. */
  readonly pending: PendingEnd | null;
  /** The money comes back so many milliseconds of the virtual clock after it moved. */
  readonly returns: {
    readonly afterMs: number;
    readonly code: string;
    readonly amount: number | null;
  } | null;
  /** Book this amount instead of the instructed one. */
  readonly amount: number | null;
  /** Carry it out so many times; all but the first are movements that nobody asked for. */
  readonly executions: number;
  /** Keep this as the key's answer instead of the true one. */
  readonly storedInstead: Answer | null;
  /** Keep the answer, execute nothing. */
  readonly nothingExecuted: boolean;
}

export const PLAIN_EXECUTION: Variant = Object.freeze({
  declineCode: null,
  pending: null,
  returns: null,
  amount: null,
  executions: 1,
  storedInstead: null,
  nothingExecuted: false,
});

interface Execution {
  readonly answer: Answer;
  readonly payout?: Payout;
  readonly charged?: boolean;
}

/** The calls that move money, make a payout or stop one. */
export type Instruction =
  | { readonly kind: 'create'; readonly parameters: PayoutParameters }
  | { readonly kind: 'commit' | 'cancel'; readonly id: string };

/**
 * The honest provider. A key is good for one set of parameters and one endpoint, and repeats its
 * first answer for as long as it lives. Without a key, or with another one, or where keys are
 * ignored, it pays again: that is what the ledger is there to show.
 */
export class PayoutProtocol {
  private busy = new Map<string, string>();

  constructor(
    private readonly book: PayoutBook,
    private readonly ends: PayoutEnds,
    private readonly record: (record: LedgerRecord) => void,
    /** The virtual clock, epoch milliseconds. */
    private readonly now: () => number,
    private readonly switchesOf: (account: string) => AccountSwitches,
  ) {}

  /** Executes once per key. Twice with one key: the stored answer, marked as replayed. */
  execute(call: Call, instruction: Instruction, variant: Variant): Answer {
    if (instruction.kind !== 'create' && !this.book.payout(call.account.account, instruction.id)) {
      return notFoundAnswer();
    }
    const fingerprint = fingerprintOf(instruction);
    const known = this.knownAnswer(call, fingerprint);
    if (known) return known;
    const { answer, payout, charged } = this.executeOnce(call, instruction, variant);
    const stored = variant.storedInstead ?? answer;
    const kept = this.keptAnswer(call, fingerprint, stored);
    this.record({
      type: 'executed',
      ...(payout && { payout }),
      ...(payout &&
        charged && { charge: { payoutId: payout.id, key: call.key, receivedAt: call.receivedAt } }),
      ...(kept && { answer: kept }),
    });
    if (payout && charged) this.chargeAgain(call, payout, variant.executions - 1);
    return stored;
  }

  /**
   * Marks the key busy, so that the same key meanwhile gets 409. Returns what ends it; null when
   * another request holds the key. Without a key, or where keys are ignored, nothing is held.
   */
  hold(call: Call, instruction: Instruction): (() => void) | null {
    const key = honoured(call);
    if (key === null) return () => undefined;
    const name = this.busyName(call, key);
    if (this.busy.has(name)) return null;
    this.busy.set(name, fingerprintOf(instruction));
    return () => this.busy.delete(name);
  }

  /** Forgets what is not in the ledger: held keys. */
  clear(): void {
    this.busy.clear();
  }

  private knownAnswer(call: Call, fingerprint: string): Answer | null {
    const key = honoured(call);
    if (key === null) return null;
    const { keyLifeMs, errorReplay } = this.switchesOf(call.account.account);
    const scope = this.scopeOf(call);
    let stored = this.book.storedAnswer(scope, key);
    if (stored && this.now() - stored.at >= keyLifeMs) {
      this.book.forgetKey(scope, key);
      stored = undefined;
    }
    const held = this.busy.get(this.busyName(call, key));
    const first = stored?.fingerprint ?? held;
    if (first !== undefined && first !== fingerprint) {
      return errorAnswer(400, 'idempotency_key_reused', 'This key was used with other parameters.');
    }
    if (held !== undefined) {
      return errorAnswer(409, 'idempotency_key_in_use', 'A request with this key is still running.');
    }
    if (stored && stored.status >= 400 && errorReplay === 're_executed') return null;
    return stored ? { status: stored.status, body: stored.body, replayed: true } : null;
  }

  /** What the account keeps under the key; null: nothing. */
  private keptAnswer(call: Call, fingerprint: string, answer: Answer): StoredAnswer | null {
    const key = honoured(call);
    const { errorReplay } = this.switchesOf(call.account.account);
    if (key === null || (answer.status >= 400 && errorReplay === 'forgotten')) return null;
    const at = Math.floor(this.now());
    return { ...this.scopeOf(call), key, fingerprint, at, status: answer.status, body: answer.body };
  }

  private scopeOf({ account: { account, credential } }: Call): KeyScope {
    return this.switchesOf(account).keyScope === 'api_key' ? { account, credential } : { account };
  }

  private busyName(call: Call, key: string): string {
    const { account, credential } = this.scopeOf(call);
    return `${account}\n${credential ?? ''}\n${key}`;
  }

  private executeOnce(call: Call, instruction: Instruction, variant: Variant): Execution {
    if (variant.nothingExecuted && variant.storedInstead) return { answer: variant.storedInstead };
    if (variant.declineCode !== null) {
      const answer = errorAnswer(402, variant.declineCode, 'The payout was declined.');
      return { answer, ...this.declined(instruction, variant.declineCode) };
    }
    switch (instruction.kind) {
      case 'create':
        return this.create(call, instruction.parameters, variant);
      case 'commit':
        return this.commit(instruction.id, variant);
      case 'cancel':
        return this.cancel(instruction.id);
    }
  }

  private create(call: Call, parameters: PayoutParameters, variant: Variant): Execution {
    const { phases, ...instructed } = parameters;
    const payout: Payout = {
      ...instructed,
      id: newId(parameters.form),
      account: call.account.account,
      amount: variant.amount ?? parameters.amount,
      key: call.key,
      createdAt: Math.floor(this.now()),
      movedAt: null,
      status: 'requires_commit',
      failureCode: null,
      end: null,
      returned: null,
    };
    const inert = (phases ?? ABILITIES[call.account.profile].phases) === 2;
    return inert ? { answer: payoutAnswer(payout), payout } : this.moveMoney(payout, variant);
  }

  /** A payout's own state admits one commit; a later one shows what became of it. */
  private commit(id: string, variant: Variant): Execution {
    const found = this.book.required(id);
    if (found.status !== 'requires_commit') return { answer: this.releasedAnswer(found) };
    return this.moveMoney({ ...found, amount: variant.amount ?? found.amount }, variant);
  }

  /** Only what was not committed can be stopped; anything else is shown as it is. */
  private cancel(id: string): Execution {
    const found = this.book.required(id);
    const isOpen = found.status === 'requires_commit' || wasDeclined(found);
    if (!isOpen) return { answer: this.releasedAnswer(found) };
    const payout: Payout = { ...found, status: 'cancelled' };
    return { answer: payoutAnswer(payout), payout };
  }

  /** A payout shows what became of it; a PaymentIntent refuses. */
  private releasedAnswer(found: Payout): Answer {
    if (found.form !== 'payment_intent') return payoutAnswer(this.ends.current(found));
    const message = 'The state of this PaymentIntent does not allow it.';
    return errorAnswer(400, 'payment_intent_unexpected_state', message);
  }

  /** A declined PaymentIntent has lost its method, so that no second confirmation can charge it. */
  private declined(instruction: Instruction, failureCode: string): { readonly payout?: Payout } {
    if (instruction.kind !== 'commit') return {};
    const found = this.book.required(instruction.id);
    if (found.form !== 'payment_intent' || found.status !== 'requires_commit') return {};
    return { payout: { ...found, status: 'failed', failureCode } };
  }

  private moveMoney(payout: Payout, variant: Variant): Execution {
    const moved = this.moved({ ...payout, movedAt: Math.floor(this.now()) }, variant);
    return { answer: payoutAnswer(moved), payout: moved, charged: true };
  }

  private moved(payout: Payout, { pending: end, returns }: Variant): Payout {
    const now = this.now();
    const returned = returns && {
      id: newId('return'),
      code: returns.code,
      amount: returns.amount ?? payout.amount,
      dueAt: Math.floor(now) + returns.afterMs,
      at: null,
    };
    if (!end) return { ...payout, status: 'succeeded', returned };
    if (end.atMs === null || end.atMs > now) return { ...payout, status: 'pending', end, returned };
    return { ...payout, status: end.status, failureCode: end.failureCode, returned };
  }

  /** The provider's own mistake: further payouts of the same reference under nobody's key. */
  private chargeAgain(call: Call, payout: Payout, times: number): void {
    for (let i = 0; i < times; i += 1) {
      const again: Payout = { ...payout, id: newId(payout.form) };
      const charge = { payoutId: again.id, key: call.key, receivedAt: call.receivedAt };
      this.record({ type: 'executed', payout: again, charge });
    }
  }
}

const ID_PREFIXES = { payout: 'po', transfer: 'tr', payment_intent: 'pi', return: 'ret' } as const;

function newId(of: keyof typeof ID_PREFIXES): string {
  return `${ID_PREFIXES[of]}_${randomBytes(12).toString('hex')}`;
}

/** A PaymentIntent that a card refused; nothing moved, and it can still be stopped. */
function wasDeclined({ form, status, movedAt }: Payout): boolean {
  return form === 'payment_intent' && status === 'failed' && movedAt === null;
}

/** The key that counts: none where the profile ignores the header. */
function honoured({ account, key }: Call): string | null {
  return ABILITIES[account.profile].keys ? key : null;
}

function fingerprintOf(instruction: Instruction): string {
  const text = instruction.kind === 'create' ? JSON.stringify(instruction.parameters) : instruction.id;
  return hash('sha256', `${instruction.kind}\n${text}`, 'base64url');
}
