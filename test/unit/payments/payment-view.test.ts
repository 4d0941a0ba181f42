import { describe, expect, it } from 'vitest';
import { DataKeyDeleted, NotAuthentic, UnknownKey } from '../../../src/encryption/unreadable.js';
import { PaymentViews } from '../../../src/payments/payment-view.js';
import type { PaymentRow } from '../../../src/payments/payment.store.js';

const views = new PaymentViews({ openDestination: async () => 'acct_1' });
const row = (changes: Partial<PaymentRow> = {}): PaymentRow => ({
  id: `pay_${'a'.repeat(32)}`,
  tenant_id: 'tenant',
  idempotency_key: 'secret-key',
  fingerprint: Buffer.alloc(32),
  fingerprint_version: 1,
  amount: 999_999_999_999n,
  currency: 'EUR',
  destination: Buffer.alloc(40),
  destination_key_id: 'k',
  destination_digest: Buffer.alloc(32),
  digest_key_id: 'd',
  provider: 'simulated',
  lane: 'simulated/default',
  reference: null,
  description: null,
  metadata: null,
  execute_at: '2026-12-24 09:00:00.5+00',
  not_after: '2026-12-25 09:00:00+00',
  state: 'scheduled',
  version: 3,
  submission_started_at: null,
  provider_ref: null,
  next_action_at: null,
  created_at: '2026-12-01 09:00:00.000001+00',
  updated_at: '2026-12-01 09:00:00.1+00',
  created_by: 'api_key:x',
  first_call_at: null,
  ...changes,
});

describe('the view of a payment', () => {
  it('shows exact digits, six fraction digits, and empty metadata where there was none', async () => {
    expect(await views.of(row())).toMatchObject({
      amount: 999_999_999_999,
      metadata: {},
      destination: 'acct_1',
      execute_at: '2026-12-24T09:00:00.500000Z',
      created_at: '2026-12-01T09:00:00.000001Z',
      updated_at: '2026-12-01T09:00:00.100000Z',
    });
  });

  it('of a tenant that was forgotten shows no destination and the rest; any other that does not open is a fault', async () => {
    const failing = (error: Error) => new PaymentViews({ openDestination: () => Promise.reject(error) });
    const shown = await failing(new DataKeyDeleted()).of(row());
    expect(shown).toMatchObject({ destination: null, state: 'scheduled', currency: 'EUR' });
    for (const error of [new UnknownKey(), new NotAuthentic('pay_1')]) {
      await expect(failing(error).of(row())).rejects.toBe(error);
    }
  });

  it('holds nothing of how the row is kept', async () => {
    const text = JSON.stringify(await views.of(row()));
    for (const inner of ['tenant', 'secret-key', 'fingerprint', 'digest', 'lane', 'created_by']) {
      expect(text).not.toContain(inner);
    }
  });

  it.each([
    [null, null],
    ['2026-12-24 09:00:00.5+00', 0],
    ['2026-12-24 09:00:00.500999+00', 0],
    ['2026-12-24 09:00:00.501+00', 1],
    ['2026-12-24 09:01:02.5+00', 62_000],
    // Broken promises are shown, not rounded away.
    ['2026-12-24 09:00:00.499999+00', -1],
    ['2026-12-24 09:00:00.499+00', -1],
    ['2026-12-24 09:00:00.498999+00', -2],
  ])(
    'counts lateness from execute_at to the first call, %s, as %j ms',
    async (first_call_at, lateness_ms) => {
      expect((await views.of(row({ first_call_at }))).lateness_ms).toBe(lateness_ms);
    },
  );

  it('plans nothing for a payment that has ended', async () => {
    const next_action_at = '2026-12-24 10:00:00+00';
    expect((await views.of(row({ state: 'unknown', next_action_at }))).next_action_at).toBe(
      '2026-12-24T10:00:00.000000Z',
    );
    expect((await views.of(row({ state: 'failed', next_action_at }))).next_action_at).toBeNull();
  });
});
