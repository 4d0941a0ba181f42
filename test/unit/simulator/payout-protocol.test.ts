import { beforeEach, describe, expect, it } from 'vitest';
import type { Answer } from '../../../src/simulator/payout-answer.js';
import { PayoutBook } from '../../../src/simulator/payout-book.js';
import type { LedgerRecord } from '../../../src/simulator/payout-book.js';
import type { PayoutParameters } from '../../../src/simulator/payout-parameters.js';
import { PLAIN_EXECUTION, PayoutProtocol } from '../../../src/simulator/payout-protocol.js';
import type { Call, Instruction, Variant } from '../../../src/simulator/payout-protocol.js';

const PAYMENT: PayoutParameters = {
  amount: 1250,
  currency: 'EUR',
  destination: 'acct_dest',
  reference: 'pay_a/1',
  description: null,
  clientReference: null,
};
const KEY_LIFE_MS = 1_000;

let nowMs: number;
let records: LedgerRecord[];
let book: PayoutBook;
let protocol: PayoutProtocol;

beforeEach(() => {
  nowMs = 1_000_000;
  records = [];
  book = new PayoutBook();
  const record = (entry: LedgerRecord): void => {
    records.push(entry);
    book.apply(entry);
  };
  protocol = new PayoutProtocol(book, record, () => nowMs, KEY_LIFE_MS);
});

function call(key: string | null, profile: 'A' | 'T' = 'A', account = `acct_${profile}`): Call {
  return { account: { account, profile }, key, receivedAt: nowMs };
}
function create(parameters: Partial<PayoutParameters> = {}): Instruction {
  return { kind: 'create', parameters: { ...PAYMENT, ...parameters } };
}
function execute(who: Call, what: Instruction, variant: Partial<Variant> = {}): Answer {
  return protocol.execute(who, what, { ...PLAIN_EXECUTION, ...variant });
}
function content(answer: Answer): Record<string, unknown> {
  return JSON.parse(answer.body) as Record<string, unknown>;
}
function errorCode(answer: Answer): unknown {
  return (content(answer)['error'] as Record<string, unknown>)['code'];
}
const charged = (): number => book.chargesOf('pay_a').length;

describe('profile A', () => {
  it('pays once and shows the payout', () => {
    const answer = execute(call('k1'), create());
    expect(answer.status).toBe(200);
    expect(content(answer)).toMatchObject({
      object: 'payout',
      livemode: false,
      amount: 1250,
      currency: 'EUR',
      destination: 'acct_dest',
      reference: 'pay_a/1',
      status: 'succeeded',
      failure_code: null,
    });
    expect(charged()).toBe(1);
  });

  it('the same key and parameters repeat the first answer, marked, and pay nothing', () => {
    const first = execute(call('k1'), create());
    const second = execute(call('k1'), create());
    expect(second).toEqual({ ...first, replayed: true });
    expect(charged()).toBe(1);
  });

  it.each<[string, Partial<PayoutParameters>]>([
    ['amount', { amount: 1251 }],
    ['currency', { currency: 'USD' }],
    ['destination', { destination: 'acct_other' }],
    ['reference', { reference: 'pay_a/2' }],
    ['description', { description: 'rent' }],
  ])('the same key with another %s is refused and pays nothing', (_name, other) => {
    execute(call('k1'), create());
    const answer = execute(call('k1'), create(other));
    expect(answer.status).toBe(400);
    expect(errorCode(answer)).toBe('idempotency_key_reused');
    expect(charged()).toBe(1);
  });

  it('without a key, or with another, it pays again: the ledger shows it', () => {
    execute(call('k1'), create());
    execute(call('k2'), create());
    execute(call(null), create());
    execute(call(null), create());
    expect(charged()).toBe(4);
  });

  it('a key belongs to its account: two credentials share it, another account does not', () => {
    const first = execute(call('k1', 'A', 'acct_one'), create());
    expect(execute(call('k1', 'A', 'acct_one'), create())).toEqual({ ...first, replayed: true });
    expect(execute(call('k1', 'A', 'acct_two'), create()).replayed).toBe(false);
    expect(charged()).toBe(2);
  });

  it('DC-02: a key is forgotten at the end of its life, and then pays again', () => {
    execute(call('k1'), create());
    nowMs += KEY_LIFE_MS - 1;
    expect(execute(call('k1'), create()).replayed).toBe(true);
    nowMs += 1;
    expect(execute(call('k1'), create()).replayed).toBe(false);
    expect(charged()).toBe(2);
  });

  it('a held key is busy for the same parameters and refused for others', () => {
    const release = protocol.hold(call('k1'), create());
    expect(protocol.hold(call('k1'), create())).toBeNull();
    expect(errorCode(execute(call('k1'), create()))).toBe('idempotency_key_in_use');
    expect(execute(call('k1'), create()).status).toBe(409);
    expect(errorCode(execute(call('k1'), create({ amount: 1 })))).toBe('idempotency_key_reused');
    expect(charged()).toBe(0);
    release?.();
    expect(execute(call('k1'), create()).status).toBe(200);
  });

  it('a decline is stored under the key and moves nothing', () => {
    const first = execute(call('k1'), create(), { declineCode: 'card_declined' });
    expect(first.status).toBe(402);
    expect(execute(call('k1'), create())).toEqual({ ...first, replayed: true });
    expect(charged()).toBe(0);
    expect(book.payoutsOf('acct_A', 'pay_a/1')).toEqual([]);
  });

  it('a stored error is replayed, whether the money moved before it or not', () => {
    const error: Answer = { status: 500, body: '{}', replayed: false };
    execute(call('k1'), create(), { storedInstead: error });
    execute(call('k2'), create(), { storedInstead: error, nothingExecuted: true });
    expect(execute(call('k1'), create())).toEqual({ ...error, replayed: true });
    expect(execute(call('k2'), create())).toEqual({ ...error, replayed: true });
    expect(charged()).toBe(1);
  });

  it('PR-01: a pending payout ends at its time or after its lookups, and its failure undoes the charge', () => {
    const end = { status: 'failed', failureCode: 'destination_closed' } as const;
    execute(call('k1'), create(), { pending: { ...end, atMs: nowMs + 10, afterLookups: null } });
    execute(call('k2'), create({ reference: 'pay_b/1' }), {
      pending: { status: 'succeeded', failureCode: null, atMs: null, afterLookups: 1 },
    });
    const status = (reference: string): unknown =>
      (content(protocol.list(call(null), reference))['data'] as Record<string, unknown>[])[0]?.['status'];
    expect([status('pay_a/1'), status('pay_b/1')]).toEqual(['pending', 'pending']);
    nowMs += 10;
    expect([status('pay_a/1'), status('pay_b/1')]).toEqual(['failed', 'succeeded']);
    expect(records.filter((entry) => entry.type === 'ended')).toHaveLength(2);
  });

  it('an end that has passed already is final in the first answer', () => {
    const pending = {
      status: 'failed',
      failureCode: 'destination_closed',
      atMs: nowMs,
      afterLookups: null,
    } as const;
    expect(content(execute(call('k1'), create(), { pending }))).toMatchObject({
      status: 'failed',
      failure_code: 'destination_closed',
    });
  });

  it('knows no payout of another account', () => {
    const id = String(content(execute(call('k1'), create()))['id']);
    expect(protocol.read(call(null), id).status).toBe(200);
    expect(errorCode(protocol.read(call(null, 'A', 'acct_other'), id))).toBe('payout_not_found');
    expect(content(protocol.list(call(null, 'A', 'acct_other'), 'pay_a/1'))['data']).toEqual([]);
  });
});

describe('profile T', () => {
  const make = (key: string): string => String(content(execute(call(key, 'T'), create()))['id']);

  it('creating moves nothing, committing moves the money once', () => {
    const id = make('k1');
    expect(content(protocol.read(call(null, 'T'), id))['status']).toBe('requires_commit');
    expect(charged()).toBe(0);
    expect(content(execute(call('k1:commit', 'T'), { kind: 'commit', id }))['status']).toBe('succeeded');
    expect(charged()).toBe(1);
  });

  it('a second commit under any key shows the committed payout and moves nothing', () => {
    const id = make('k1');
    execute(call('k1:commit', 'T'), { kind: 'commit', id });
    for (const key of ['k1:commit:2', null]) {
      const answer = execute(call(key, 'T'), { kind: 'commit', id });
      expect(answer.replayed).toBe(false);
      expect(content(answer)).toMatchObject({ id, status: 'succeeded' });
    }
    expect(execute(call('k1:commit', 'T'), { kind: 'commit', id }).replayed).toBe(true);
    expect(charged()).toBe(1);
  });

  it('a key is bound to its endpoint', () => {
    const id = make('k1');
    expect(errorCode(execute(call('k1', 'T'), { kind: 'commit', id }))).toBe('idempotency_key_reused');
    expect(charged()).toBe(0);
  });

  it('a declined commit leaves the payout open for another key', () => {
    const id = make('k1');
    execute(call('k1:commit', 'T'), { kind: 'commit', id }, { declineCode: 'insufficient_funds' });
    expect(execute(call('k1:commit', 'T'), { kind: 'commit', id }).status).toBe(402);
    expect(execute(call('k1:commit:2', 'T'), { kind: 'commit', id }).status).toBe(200);
    expect(charged()).toBe(1);
  });

  it('an unknown payout cannot be committed, and the refusal is not kept under the key', () => {
    const commit: Instruction = { kind: 'commit', id: 'po_unknown' };
    expect(errorCode(execute(call('k1', 'T'), commit))).toBe('payout_not_found');
    expect(records).toEqual([]);
  });
});

describe('the ledger', () => {
  it('rebuilds payouts, keys, charges and times, so that a restart changes no answer', () => {
    execute(call('k1'), create());
    execute(call('k2'), create({ reference: 'pay_b/1' }), {
      pending: { status: 'succeeded', failureCode: null, atMs: nowMs + 5, afterLookups: null },
    });
    const id = String(content(execute(call('k3', 'T'), create({ reference: 'pay_c/1' })))['id']);
    execute(call('k3:commit', 'T'), { kind: 'commit', id });
    nowMs += 5;
    protocol.list(call(null), 'pay_b/1');

    const again = new PayoutBook();
    for (const entry of JSON.parse(JSON.stringify(records)) as LedgerRecord[]) again.apply(entry);
    expect(again).toEqual(book);
    again.apply({ type: 'reset' });
    expect(again).toEqual(new PayoutBook());
  });
});
