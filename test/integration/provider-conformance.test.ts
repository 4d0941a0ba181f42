import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import { providerConformance } from '../support/provider-conformance.js';
import type { ProviderRig, Trouble } from '../support/provider-conformance.js';
import { startSimulator } from '../support/simulator.js';
import type { FaultInput } from '../support/simulator.js';

const FAULT_OF: Readonly<Record<Trouble, FaultInput>> = {
  reset_before: 'reset_before',
  reset_after: 'reset_after',
  silence: 'hang',
  server_error_before: 'http_500_before',
  server_error_after: 'http_500_after',
  stored_server_error_after: { kind: 'http_500_after', stored: true },
  gateway_page_after: 'http_502_html_after',
  empty_after: 'empty_200_after',
  broken_body_after: 'broken_json_after',
  cut_body_after: 'truncate_after',
  unknown_status_after: 'unknown_status_after',
  other_amount_after: 'other_amount_after',
  redirect: 'redirect_307',
  throttled: { kind: 'http_429', retryAfter: 60 },
  unauthenticated: 'http_401',
  forbidden: 'http_403',
  declined: 'decline',
  declined_for_funds: 'decline_funds',
  pending: 'pending_then_final',
  pending_then_failed: { kind: 'pending_then_final', final: 'failed', lookups: 1 },
  slow: { kind: 'slow', afterMs: 2_000 },
  executed_late: { kind: 'late_commit', afterMs: 2_000 },
  denies_existence: 'lookup_absent',
  lookup_error: 'lookup_500',
};

async function openRig(profile: 'A' | 'T'): Promise<ProviderRig> {
  const simulator = await startSimulator();
  const options = { baseUrl: simulator.url, apiKey: simulator.apiKeys[profile], profile };
  const provider = new SimulatedProvider(options);
  const stranger = new SimulatedProvider({ ...options, apiKey: 'sk_stranger' });
  // Port 9 (discard) of the loopback interface: nothing listens there.
  const unreachable = new SimulatedProvider({ ...options, baseUrl: 'http://127.0.0.1:9' });
  const moving = profile === 'T' ? 'commit' : 'submit';
  return {
    provider,
    unreachable,
    stranger,
    arrange: (paymentId, call, trouble) => {
      const operation = call === 'move' ? moving : call === 'create' ? 'submit' : 'lookup';
      return simulator.script(paymentId, operation, FAULT_OF[trouble]);
    },
    charges: async (paymentId) => (await simulator.effects(paymentId)).count,
    untilCharged: (paymentId) => simulator.untilCharged(paymentId),
    requests: async (paymentId) => (await simulator.requests(paymentId)).length,
    untilRequested: (paymentId) =>
      simulator.untilRequests(paymentId, (seen) => seen.some(({ operation }) => operation === moving)),
    close: async () => {
      await Promise.all([provider, stranger, unreachable].map((one) => one.close()));
      await simulator.stop();
    },
  };
}

providerConformance('the simulated provider, profile A: keyed idempotency', () => openRig('A'));
providerConformance('the simulated provider, profile T: create and commit', () => openRig('T'));
