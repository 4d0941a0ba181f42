import { hash, randomBytes } from 'node:crypto';
import { errorAnswer, listAnswer, payoutAnswer } from './payout-answer.js';
import type { Answer } from './payout-answer.js';
import type { LedgerRecord, Payout, PayoutBook, PendingEnd, StoredAnswer } from './payout-book.js';
import type { PayoutParameters } from './payout-parameters.js';
import type { SimulatedAccount } from './settings.js';

/** One request: who asks, under which key, and when it arrived (epoch ms, wall clock). */
export interface Call {
  readonly account: SimulatedAccount;
  readonly key: string | null;
  readonly receivedAt: number;
}

/** How an execution differs from the plain success; all null: it does not. */
export interface Variant {
  /** Refuse with 402 and this code, stored under the key; nothing moves. */
  readonly declineCode: string | null;
  /** The money is on its way instead of there; an end that has passed already is final at once. */
  readonly pending: PendingEnd | null;
  /** Book this amount instead of the instructed one. */
  readonly amount: number | null;
  /** Keep this as the key's answer instead of the true one. */
  readonly storedInstead: Answer | null;
  /** Keep the answer, execute nothing. */
  readonly nothingExecuted: boolean;
}

export const PLAIN_EXECUTION: Variant = Object.freeze({
  declineCode: null,
  pending: null,
  amount: null,
  storedInstead: null,
  nothingExecuted: false,
});

interface Execution {
  readonly answer: Answer;
  readonly payout?: Payout;
  readonly charged?: boolean;
}

/** The calls that move money or make a payout. */
export type Instruction =
  | { readonly kind: 'create'; readonly parameters: PayoutParameters }
  | { readonly kind: 'commit'; readonly id: string };

/**
 * The honest provider. A key is good for one set of parameters and one endpoint, and repeats its
 * first answer for as long as it lives. Without a key, or with another one, it pays again: that
 * is what the ledger is there to show.
 */
export class PayoutProtocol {
  private busy = new Map<string, string>();
  private lookups = new Map<string, number>();

  constructor(
    private readonly book: PayoutBook,
    private readonly record: (record: LedgerRecord) => void,
    private readonly now: () => number,
    private readonly keyLifeMs: number,
  ) {}

  /** Executes once per key. Twice with one key: the stored answer, marked as replayed. */
  execute(call: Call, instruction: Instruction, variant: Variant): Answer {
    if (instruction.kind === 'commit' && !this.book.payout(call.account.account, instruction.id))
      return notFound();
    const fingerprint = fingerprintOf(instruction);
    const known = this.knownAnswer(call, fingerprint);
    if (known) return known;
    const { answer, payout, charged } = this.executeOnce(call, instruction, variant);
    const stored = variant.storedInstead ?? answer;
    this.record({
      type: 'executed',
      ...(payout && { payout }),
      ...(payout &&
        charged && { charge: { payoutId: payout.id, key: call.key, receivedAt: call.receivedAt } }),
      ...(call.key !== null && { answer: storedAnswer(call, call.key, fingerprint, stored) }),
    });
    return stored;
  }

  /**
   * Marks the key busy, so that the same key meanwhile gets 409. Returns what ends it; null when
   * another request holds the key. Without a key nothing is held.
   */
  hold(call: Call, instruction: Instruction): (() => void) | null {
    if (call.key === null) return () => undefined;
    const name = `${call.account.account}\n${call.key}`;
    if (this.busy.has(name)) return null;
    this.busy.set(name, fingerprintOf(instruction));
    return () => this.busy.delete(name);
  }

  read(call: Call, id: string): Answer {
    const payout = this.book.payout(call.account.account, id);
    return payout ? payoutAnswer(this.lookedAt(payout)) : notFound();
  }

  list(call: Call, reference: string): Answer {
    const payouts = this.book.payoutsOf(call.account.account, reference);
    return listAnswer(payouts.map((payout) => this.lookedAt(payout)));
  }

  /** The payout as it is now: one whose pending time is over has ended. */
  current(payout: Payout): Payout {
    const atMs = payout.end?.atMs ?? null;
    return payout.end && atMs !== null && this.now() >= atMs ? this.end(payout, payout.end) : payout;
  }

  /** Forgets what is not in the ledger: held keys and counts of lookups. */
  clear(): void {
    this.busy.clear();
    this.lookups.clear();
  }

  private knownAnswer(call: Call, fingerprint: string): Answer | null {
    if (call.key === null) return null;
    const { account } = call.account;
    let stored = this.book.storedAnswer(account, call.key);
    if (stored && this.now() - stored.at >= this.keyLifeMs) {
      this.book.forgetKey(account, call.key);
      stored = undefined;
    }
    const held = this.busy.get(`${account}\n${call.key}`);
    const first = stored?.fingerprint ?? held;
    if (first !== undefined && first !== fingerprint) {
      return errorAnswer(400, 'idempotency_key_reused', 'This key was used with other parameters.');
    }
    if (held !== undefined) {
      return errorAnswer(409, 'idempotency_key_in_use', 'A request with this key is still running.');
    }
    return stored ? { status: stored.status, body: stored.body, replayed: true } : null;
  }

  private executeOnce(call: Call, instruction: Instruction, variant: Variant): Execution {
    if (variant.nothingExecuted && variant.storedInstead) return { answer: variant.storedInstead };
    if (variant.declineCode !== null) {
      return { answer: errorAnswer(402, variant.declineCode, 'The payout was declined.') };
    }
    return instruction.kind === 'create'
      ? this.create(call, instruction.parameters, variant)
      : this.commit(instruction.id, variant);
  }

  private create(call: Call, parameters: PayoutParameters, variant: Variant): Execution {
    const inert = call.account.profile === 'T';
    const payout: Payout = {
      id: `po_${randomBytes(12).toString('hex')}`,
      account: call.account.account,
      ...parameters,
      amount: variant.amount ?? parameters.amount,
      createdAt: Math.floor(call.receivedAt),
      status: inert ? 'requires_commit' : 'succeeded',
      failureCode: null,
      end: null,
    };
    return inert ? { answer: payoutAnswer(payout), payout } : this.moveMoney(payout, variant);
  }

  /** A payout's own state admits one commit; a later one shows what the first did. */
  private commit(id: string, variant: Variant): Execution {
    const found = this.book.required(id);
    if (found.status !== 'requires_commit') return { answer: payoutAnswer(this.current(found)) };
    return this.moveMoney({ ...found, amount: variant.amount ?? found.amount }, variant);
  }

  private moveMoney(payout: Payout, variant: Variant): Execution {
    const moved = this.moved(payout, variant.pending);
    return { answer: payoutAnswer(moved), payout: moved, charged: true };
  }

  private moved(payout: Payout, end: PendingEnd | null): Payout {
    if (!end) return { ...payout, status: 'succeeded' };
    if (end.atMs === null || end.atMs > this.now()) return { ...payout, status: 'pending', end };
    return { ...payout, status: end.status, failureCode: end.failureCode };
  }

  private lookedAt(payout: Payout): Payout {
    const now = this.current(payout);
    const limit = now.end?.afterLookups ?? null;
    if (!now.end || limit === null) return now;
    const count = this.lookups.get(now.id) ?? 0;
    if (count >= limit) return this.end(now, now.end);
    this.lookups.set(now.id, count + 1);
    return now;
  }

  private end(payout: Payout, { status, failureCode }: PendingEnd): Payout {
    this.lookups.delete(payout.id);
    this.record({ type: 'ended', id: payout.id, status, failureCode });
    return this.book.required(payout.id);
  }
}

function notFound(): Answer {
  return errorAnswer(404, 'payout_not_found', 'No such payout.');
}

function fingerprintOf(instruction: Instruction): string {
  const text = instruction.kind === 'create' ? JSON.stringify(instruction.parameters) : instruction.id;
  return hash('sha256', `${instruction.kind}\n${text}`, 'base64url');
}

function storedAnswer(call: Call, key: string, fingerprint: string, answer: Answer): StoredAnswer {
  const { status, body } = answer;
  return { account: call.account.account, key, fingerprint, at: Math.floor(call.receivedAt), status, body };
}
