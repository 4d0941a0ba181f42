import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PrepareRefused } from '../../../../src/providers/payment-provider.js';
import type {
  AttemptContext,
  CanonicalPayment,
  LookupRefs,
  PreparedSubmission,
} from '../../../../src/providers/payment-provider.js';
import { capabilityClass, validateDescriptor } from '../../../../src/providers/provider-descriptor.js';
import { SimulatedProvider } from '../../../../src/providers/simulated/simulated.adapter.js';
import type { SimulatedProfile } from '../../../../src/providers/simulated/simulated.descriptor.js';
import { instructionOf } from '../../../../src/providers/simulated/simulated.request.js';

const PAYMENT: CanonicalPayment = {
  paymentId: 'pay_a',
  generation: 1,
  providerKey: '0d3f3c6e-0000-5000-8000-000000000001',
  amountMinor: 1250n,
  currency: 'EUR',
  destination: 'acct_dest',
  reference: 'invoice 7',
  description: 'rent',
};
/** Nobody listens there: whoever connects gets `connect_refused`. */
const OPTIONS = { baseUrl: 'http://127.0.0.1:9', apiKey: 'sk_secret' };
const provider = new SimulatedProvider(OPTIONS);
const ATTEMPT: AttemptContext = {
  paymentId: 'pay_a',
  generation: 1,
  attempt: 1,
  providerKey: PAYMENT.providerKey,
  commitTry: 1,
  deadlineMs: 5_000,
  mayWrite: () => true,
};
const REFS: LookupRefs = {
  ...ATTEMPT,
  providerRef: null,
  sentSince: new Date(0),
  by: 'any',
  expected: PAYMENT,
};

describe('prepare', () => {
  it('writes the parameters in one fixed text, and freezes where they go', () => {
    expect(provider.prepare(PAYMENT)).toEqual({
      parameters:
        '{"amount":1250,"currency":"EUR","destination":"acct_dest","reference":"pay_a/1",' +
        '"description":"rent","client_reference":"invoice 7"}',
      parametersSha256: '30659def9f4b735c07c4956795b247c53b465601414e9e2eaf3aab2dec9c0370',
      adapter: 'simulated',
      adapterVersion: '1',
      apiVersion: 'v1',
      credentialId: expect.stringMatching(/^cred_[0-9a-f]{12}$/) as string,
      account: 'default',
      baseUrl: OPTIONS.baseUrl,
    });
  });

  it('leaves out what the payment does not have', () => {
    const { parameters } = provider.prepare({ ...PAYMENT, reference: null, description: null });
    expect(parameters).toBe(
      '{"amount":1250,"currency":"EUR","destination":"acct_dest","reference":"pay_a/1"}',
    );
  });

  it('tells credentials apart without giving one away', () => {
    const other = new SimulatedProvider({ ...OPTIONS, apiKey: 'sk_other' });
    const [a, b] = [provider.prepare(PAYMENT), other.prepare(PAYMENT)];
    expect(a.credentialId).not.toBe(b.credentialId);
    expect(JSON.stringify(a)).not.toContain('sk_secret');
  });

  it('AM-02: every amount is read back exactly, and the same payment gives the same text', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: 999_999_999_999n }),
        fc.string({ minLength: 1, maxLength: 200 }),
        (amountMinor, text) => {
          fc.pre(text.isWellFormed());
          const payment = { ...PAYMENT, amountMinor, destination: text };
          const { parameters } = provider.prepare(payment);
          expect(provider.prepare(payment).parameters).toBe(parameters);
          expect(instructionOf(parameters)).toEqual({
            amountMinor,
            currency: 'EUR',
            destination: text,
            reference: 'pay_a/1',
          });
        },
      ),
    );
  });

  it.each<[string, Partial<CanonicalPayment>]>([
    ['amount_out_of_range', { amountMinor: 0n }],
    ['amount_out_of_range', { amountMinor: -1n }],
    ['amount_out_of_range', { amountMinor: 1_000_000_000_000n }],
    ['currency_unusable', { currency: 'eur' }],
    ['destination_unusable', { destination: '' }],
    ['destination_unusable', { destination: 'x'.repeat(257) }],
    ['destination_unusable', { destination: 'half a \ud800 pair' }],
    ['reference_unusable', { paymentId: 'x'.repeat(128) }],
    ['description_unusable', { description: 'x'.repeat(501) }],
    ['client_reference_unusable', { reference: 'x'.repeat(257) }],
  ])('refuses what cannot be expressed: %s (%#)', (code, changes) => {
    expect(() => provider.prepare({ ...PAYMENT, ...changes })).toThrow(PrepareRefused);
    expect(() => provider.prepare({ ...PAYMENT, ...changes })).toThrow(code);
  });
});

describe('submit', () => {
  const prepared = provider.prepare(PAYMENT);

  it('connects when all fits', async () => {
    expect(await provider.submit(prepared, ATTEMPT)).toMatchObject({
      class: 'not_sent',
      code: 'connect_refused',
    });
  });

  it.each<[string, Partial<PreparedSubmission>, Partial<AttemptContext>]>([
    ['prepared_for_other_api', { adapter: 'stripe' }, {}],
    ['prepared_for_other_api', { apiVersion: 'v2' }, {}],
    ['prepared_for_other_account', { account: 'acct_b' }, {}],
    ['prepared_for_other_account', { baseUrl: 'http://127.0.0.1:10' }, {}],
    ['prepared_altered', { parameters: prepared.parameters.replace('1250', '9250') }, {}],
    ['prepared_for_other_payment', {}, { paymentId: 'pay_b' }],
    ['prepared_for_other_payment', {}, { generation: 2 }],
  ])('sends nothing for a frozen submission that does not fit: %s (%#)', async (code, changes, attempt) => {
    const result = await provider.submit({ ...prepared, ...changes }, { ...ATTEMPT, ...attempt });
    expect(result).toMatchObject({ class: 'not_sent', code, bytesSent: false, httpStatus: null });
  });

  it('sends nothing that is not an instruction, even with the right digest', async () => {
    const rotten = provider.prepare(PAYMENT);
    const parameters = '{"amount":1.5}';
    const parametersSha256 = '9c7cd1a8a02864a9eb4a34c2e2afafbdf972ffd9ee0e3ce15ba5a5b41add0301';
    expect(await provider.submit({ ...rotten, parameters, parametersSha256 }, ATTEMPT)).toMatchObject({
      class: 'not_sent',
    });
  });

  it('a rotated credential of the same account may send what the old one prepared', async () => {
    const rotated = new SimulatedProvider({ ...OPTIONS, apiKey: 'sk_new' });
    expect(await rotated.submit(prepared, ATTEMPT)).toMatchObject({ code: 'connect_refused' });
  });
});

describe('connections', () => {
  it.each<[SimulatedProfile, number]>([
    ['A', 1],
    ['D', 2],
  ])('of profile %s: two calls, one after the other, take %d', async (profile, connections) => {
    let count = 0;
    const server = createServer((_request, response) => response.end('{}'));
    server.on('connection', () => count++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const profiled = new SimulatedProvider({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'sk_a', profile });
    for (const _ of [1, 2]) await profiled.submit(profiled.prepare(PAYMENT), ATTEMPT);
    await profiled.close();
    server.closeAllConnections();
    server.close();
    expect(count).toBe(connections);
  });
});

describe('commit, cancel and lookup', () => {
  const twoPhases = new SimulatedProvider({ ...OPTIONS, profile: 'T' });
  const prepared = twoPhases.prepare(PAYMENT);

  it('one phase has nothing to commit and nothing to stop', async () => {
    const own = provider.prepare(PAYMENT);
    expect(await provider.commit(own, 'po_0123456789', ATTEMPT)).toMatchObject({
      class: 'not_sent',
      code: 'no_commit_phase',
    });
    expect(await provider.cancel('po_0123456789', ATTEMPT)).toMatchObject({
      class: 'not_sent',
      code: 'no_cancel',
    });
  });

  it.each<[string, Partial<PreparedSubmission>, Partial<AttemptContext>]>([
    ['prepared_for_other_api', { adapter: 'simulated' }, {}],
    ['prepared_for_other_account', { account: 'acct_b' }, {}],
    ['prepared_altered', { parameters: prepared.parameters.replace('1250', '9250') }, {}],
    ['prepared_for_other_payment', {}, { generation: 2 }],
    ['commit_try_unusable', {}, { commitTry: 3 }],
    ['commit_try_unusable', {}, { commitTry: 0 }],
    ['connect_refused', {}, { commitTry: 2 }],
  ])('commits nothing that does not fit: %s (%#)', async (code, changes, attempt) => {
    const result = await twoPhases.commit({ ...prepared, ...changes }, 'po_0123456789', {
      ...ATTEMPT,
      ...attempt,
    });
    expect(result).toMatchObject({ class: 'not_sent', code, bytesSent: false });
  });

  it('an id that is none of the provider is not put into a path', async () => {
    const id = '../../v1/payouts';
    const unusable = { class: 'not_sent', code: 'provider_ref_unusable' };
    expect(await twoPhases.commit(prepared, id, ATTEMPT)).toMatchObject(unusable);
    expect(await twoPhases.cancel(id, ATTEMPT)).toMatchObject(unusable);
    const refs = { ...REFS, providerRef: id };
    expect(await twoPhases.lookup(refs)).toEqual({ kind: 'cannot_tell', code: 'provider_ref_unusable' });
  });

  it('a lookup that reaches nobody cannot tell', async () => {
    expect(await provider.lookup(REFS)).toEqual({ kind: 'cannot_tell', code: 'connect_refused' });
  });
});

describe('the descriptor', () => {
  it('profile A promises keys of 24 h with 4 h margin; rigs may shorten both', () => {
    expect(provider.capabilities()).toMatchObject({
      idempotency: {
        mode: 'key',
        life: 86_400_000,
        marginMs: 14_400_000,
        scope: 'account',
        errors: 'stored',
      },
      phases: 1,
      maxInFlightMs: 35_000,
    });
    const rig = new SimulatedProvider({
      ...OPTIONS,
      keyLifeMs: 5_000,
      keyMarginMs: 0,
      descriptor: { ratePerSecond: 20 },
    });
    expect(rig.capabilities()).toMatchObject({
      idempotency: { life: 5_000, marginMs: 0 },
      ratePerSecond: 20,
    });
  });

  it('profile T rests on the state of its payout', () => {
    const descriptor = new SimulatedProvider({ ...OPTIONS, profile: 'T' }).capabilities();
    expect(descriptor).toMatchObject({ phases: 2, idempotency: { mode: 'object_state', life: 'forever' } });
  });

  it.each<[SimulatedProfile, string]>([
    ['A', 'simulated'],
    ['B', 'simulated_b'],
    ['C', 'simulated_c'],
    ['D', 'simulated_d'],
    ['T', 'simulated_t'],
  ])('profile %s is of its class, sound, and called %s', (profile, name) => {
    const profiled = new SimulatedProvider({ ...OPTIONS, profile });
    const descriptor = profiled.capabilities();
    expect([profiled.name, capabilityClass(descriptor)]).toEqual([name, profile]);
    expect(profiled.prepare(PAYMENT).adapter).toBe(name);
    expect(() => validateDescriptor(name, descriptor, { smallMarginAllowed: false })).not.toThrow();
  });
});
