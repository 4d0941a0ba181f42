import { beforeEach, describe, expect, it } from 'vitest';
import { USUAL_SWITCHES } from '../../../src/simulator/account.js';
import type { AccountSwitches, Profile } from '../../../src/simulator/account.js';
import type { Answer } from '../../../src/simulator/payout-answer.js';
import { PayoutBook } from '../../../src/simulator/payout-book.js';
import type { LedgerRecord } from '../../../src/simulator/payout-book.js';
import { PayoutEnds } from '../../../src/simulator/payout-ends.js';
import { PayoutLookups } from '../../../src/simulator/payout-lookups.js';
import type { ListQuery } from '../../../src/simulator/payout-lookups.js';
import type { PayoutParameters } from '../../../src/simulator/payout-parameters.js';
import { PLAIN_EXECUTION, PayoutProtocol } from '../../../src/simulator/payout-protocol.js';
import type { Call, Instruction, Variant } from '../../../src/simulator/payout-protocol.js';

const PAYMENT: PayoutParameters = {
  form: 'payout',
  amount: 1250,
  currency: 'EUR',
  destination: 'acct_dest',
  reference: 'pay_a/1',
  description: null,
  clientReference: null,
  details: null,
};
const KEY_LIFE_MS = 1_000;

let nowMs: number;
let records: LedgerRecord[];
let book: PayoutBook;
let switches: AccountSwitches;
let protocol: PayoutProtocol;
let lookups: PayoutLookups;

beforeEach(() => {
  nowMs = 1_000_000;
  records = [];
  book = new PayoutBook();
  const record = (entry: LedgerRecord): void => {
    records.push(entry);
    book.apply(entry);
  };
  const now = (): number => nowMs;
  switches = { ...USUAL_SWITCHES, keyLifeMs: KEY_LIFE_MS };
  const ends = new PayoutEnds(book, record, { now, at: () => undefined });
  protocol = new PayoutProtocol(book, ends, record, now, () => switches);
  lookups = new PayoutLookups(book, ends, now);
});

function call(
  key: string | null,
  profile: Profile = 'A',
  account = `acct_${profile}`,
  credential = 'one',
): Call {
  return { account: { account, profile, credential }, key, receivedAt: nowMs };
}
function list(query: Partial<ListQuery>, account = 'acct_A', lagMs = 0): Answer {
  const all = { form: 'payout', reference: null, details: {}, createdFrom: null, createdTo: null } as const;
  const page = { startingAfter: null, limit: 100, newestFirst: false };
  return lookups.list({ account, lagMs }, { ...all, ...page, ...query }, () => false);
}
const read = (id: string, account = 'acct_A', lagMs = 0): Answer =>
  lookups.read({ account, lagMs }, 'payout', id);
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
      (content(list({ reference }))['data'] as Record<string, unknown>[])[0]?.['status'];
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
    expect(read(id).status).toBe(200);
    expect(errorCode(read(id, 'acct_other'))).toBe('payout_not_found');
    expect(content(list({ reference: 'pay_a/1' }, 'acct_other'))['data']).toEqual([]);
  });
});

describe('profile T', () => {
  const make = (key: string): string => String(content(execute(call(key, 'T'), create()))['id']);

  it('creating moves nothing, committing moves the money once', () => {
    const id = make('k1');
    expect(content(read(id, 'acct_T'))['status']).toBe('requires_commit');
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

describe('profile T, cancelling', () => {
  it('stops what was not committed, and a commit afterwards moves nothing', () => {
    const id = String(content(execute(call('k1', 'T'), create()))['id']);
    expect(content(execute(call('k1:cancel', 'T'), { kind: 'cancel', id }))['status']).toBe('cancelled');
    const commit = execute(call('k1:commit', 'T'), { kind: 'commit', id });
    expect(content(commit)).toMatchObject({ id, status: 'cancelled' });
    expect(charged()).toBe(0);
  });

  it('does not stop what was committed: it shows it as it is', () => {
    const id = String(content(execute(call('k1', 'T'), create()))['id']);
    execute(call('k1:commit', 'T'), { kind: 'commit', id });
    expect(content(execute(call(null, 'T'), { kind: 'cancel', id }))['status']).toBe('succeeded');
    expect(charged()).toBe(1);
  });
});

describe.each(['C', 'D'] as const)('profile %s', (profile) => {
  it('ignores the key: the same request again pays again, and the ledger still shows the key', () => {
    const first = execute(call('k1', profile), create());
    const second = execute(call('k1', profile), create());
    expect(second.replayed).toBe(false);
    expect(content(second)['id']).not.toBe(content(first)['id']);
    expect(book.chargesOf('pay_a').map(({ key }) => key)).toEqual(['k1', 'k1']);
    expect(protocol.hold(call('k1', profile), create())).not.toBeNull();
    expect(execute(call('k1', profile), create()).status).toBe(200);
  });
});

describe('switches of an account', () => {
  it('keys of one bearer key are unknown to another where their scope is the bearer key', () => {
    switches = { ...switches, keyScope: 'api_key' };
    execute(call('k1'), create());
    expect(execute(call('k1'), create()).replayed).toBe(true);
    expect(execute(call('k1', 'A', 'acct_A', 'two'), create()).replayed).toBe(false);
    expect(charged()).toBe(2);
  });

  it.each([
    // What a repeat with the same and with other parameters comes to, after a declined request.
    ['stored', 402, 400],
    ['forgotten', 200, 200],
    ['re_executed', 200, 400],
  ] as const)(
    'errors are %s: a repeat of a decline answers %i, with other parameters %i',
    (errorReplay, same, other) => {
      switches = { ...switches, errorReplay };
      execute(call('k1'), create(), { declineCode: 'card_declined' });
      execute(call('k2'), create(), { declineCode: 'card_declined' });
      expect(execute(call('k1'), create()).status).toBe(same);
      expect(execute(call('k2'), create({ amount: 7 })).status).toBe(other);
    },
  );

  it.each(['forgotten', 're_executed'] as const)(
    'an error after the money moved pays again where errors are %s',
    (errorReplay) => {
      switches = { ...switches, errorReplay };
      const error: Answer = { status: 500, body: '{}', replayed: false };
      execute(call('k1'), create(), { storedInstead: error });
      expect(execute(call('k1'), create()).status).toBe(200);
      expect(execute(call('k1'), create()).replayed).toBe(true);
      expect(charged()).toBe(2);
    },
  );

  it('a lagging lookup sees nothing of a young payout, and an inert one where it was committed since', () => {
    const id = String(content(execute(call('k1', 'T'), create()))['id']);
    expect(read(id, 'acct_T', 10).status).toBe(404);
    expect(content(list({ reference: 'pay_a/1' }, 'acct_T', 10))['data']).toEqual([]);
    nowMs += 10;
    execute(call('k1:commit', 'T'), { kind: 'commit', id });
    expect(content(read(id, 'acct_T', 10))['status']).toBe('requires_commit');
    expect(content(read(id, 'acct_T'))['status']).toBe('succeeded');
    nowMs += 10;
    expect(content(read(id, 'acct_T', 10))['status']).toBe('succeeded');
  });
});

describe('what the provider itself does wrong or late', () => {
  it('executed twice, it makes two payouts under one key, and both count', () => {
    execute(call('k1'), create(), { executions: 2 });
    expect(charged()).toBe(2);
    expect(content(list({ reference: 'pay_a/1' }))['data']).toHaveLength(2);
    expect(execute(call('k1'), create()).replayed).toBe(true);
    expect(charged()).toBe(2);
  });

  it('PR-01: money comes back at its time and only once; the payout did succeed', () => {
    const returns = { afterMs: 100, code: 'destination_closed', amount: null };
    const id = String(content(execute(call('k1'), create(), { returns }))['id']);
    nowMs += 99;
    expect(content(read(id))).toMatchObject({ status: 'succeeded', returned: null });
    nowMs += 1;
    const back = { code: 'destination_closed', amount: 1250, created: 1000 };
    expect(content(read(id))).toMatchObject({ status: 'succeeded', returned: back });
    read(id);
    expect(records.filter(({ type }) => type === 'returned')).toHaveLength(1);
  });
});

describe('the scan of an account', () => {
  it('lists payouts of a time span, page by page, each once', () => {
    const ids = Array.from({ length: 5 }, (_, i) => {
      nowMs = 2_000_000 + i * 1_000;
      return String(content(execute(call(`k${i}`), create({ reference: `pay_${i}/1` })))['id']);
    });
    const page = (startingAfter: string | null): string[] =>
      (
        content(list({ createdFrom: 2_001, createdTo: 2_004, limit: 2, startingAfter }))['data'] as {
          id: string;
        }[]
      ).map(({ id }) => id);
    expect(page(null)).toEqual(ids.slice(1, 3));
    expect(page(ids[2]!)).toEqual(ids.slice(3, 5));
    expect(page(ids[4]!)).toEqual([]);
    expect(content(list({ createdFrom: 2_001, limit: 2 }))['has_more']).toBe(true);
    expect(content(list({ createdFrom: 2_001, limit: 4 }))['has_more']).toBe(false);
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
    list({ reference: 'pay_b/1' });

    const again = new PayoutBook();
    for (const entry of JSON.parse(JSON.stringify(records)) as LedgerRecord[]) again.apply(entry);
    expect(again).toEqual(book);
    again.apply({ type: 'reset' });
    expect(again).toEqual(new PayoutBook());
  });
});
