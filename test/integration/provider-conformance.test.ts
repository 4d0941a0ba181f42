import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe } from 'vitest';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import {
  SIMULATED_PROFILES,
  describeSimulated,
  type SimulatedProfile,
} from '../../src/providers/simulated/simulated.descriptor.js';
import { providerConformance } from '../support/provider-conformance.js';
import type { Delivery, ProviderRig, Trouble } from '../support/provider-conformance-rig.js';
import { describeWebhooks } from '../support/provider-conformance-webhooks.js';
import { startSimulator } from '../support/simulator.js';
import type { FaultInput } from '../support/simulator.js';
import { until } from '../support/until.js';

const FAULT_OF: Readonly<Record<Trouble, FaultInput>> = {
  reset_before: 'reset_before',
  reset_after: 'reset_after',
  silence: 'hang',
  server_error_before: 'http_500_before',
  server_error_after: 'http_500_after',
  stored_server_error_before: { kind: 'http_500_before', stored: true },
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

/** Takes what the provider sends by itself, and keeps it as it came. */
async function openReceiver(): Promise<{
  readonly url: string;
  readonly received: Delivery[];
  close(): void;
}> {
  const received: Delivery[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ raw: Buffer.concat(chunks), headers: request.headers });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/events`,
    received,
    close: () => (server.closeAllConnections(), server.close()),
  };
}

/** At least 24 bytes of base64, which the Standard Webhooks scheme asks for. */
const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24, 'k').toString('base64')}`;
const SCHEME_OF = { simulated_v1: 'simulated', standard_webhooks: 'standard' } as const;

async function openRig(
  profile: SimulatedProfile,
  webhooks: keyof typeof SCHEME_OF = 'simulated_v1',
): Promise<ProviderRig> {
  const [simulator, receiver] = await Promise.all([startSimulator(), openReceiver()]);
  await simulator.setWebhook({
    account: `acct_${profile.toLowerCase()}`,
    url: receiver.url,
    secrets: [WEBHOOK_SECRET],
    scheme: SCHEME_OF[webhooks],
  });
  const options = {
    baseUrl: simulator.url,
    apiKey: simulator.apiKeys[profile],
    profile,
    descriptor: { webhooks },
  };
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
    keysSeen: async (paymentId) =>
      (await simulator.requests(paymentId))
        .filter(({ operation }) => operation !== 'lookup')
        .map(({ key }) => key),
    untilRequested: (paymentId) =>
      simulator.untilRequests(paymentId, (seen) => seen.some(({ operation }) => operation === moving)),
    webhookSecret: WEBHOOK_SECRET,
    delivery: async (paymentId) => {
      const find = (): Delivery | undefined =>
        receiver.received.find(({ raw }) => raw.toString('utf8').includes(paymentId));
      const found = await until('the event', find, (delivery) => delivery !== undefined);
      if (!found) throw new Error('the event came and is gone');
      return found;
    },
    close: async () => {
      receiver.close();
      await Promise.all([provider, stranger, unreachable].map((one) => one.close()));
      await simulator.stop();
    },
  };
}

for (const profile of SIMULATED_PROFILES) {
  providerConformance(`the simulated provider of profile ${profile}`, describeSimulated({ profile }), () =>
    openRig(profile),
  );
}

const standard = describeSimulated({ profile: 'A', changes: { webhooks: 'standard_webhooks' } });
describe('the simulated provider with webhooks standard_webhooks', () => {
  let rig: ProviderRig;
  beforeAll(async () => {
    rig = await openRig('A', 'standard_webhooks');
  });
  afterAll(() => rig.close());
  describeWebhooks(() => rig, standard);
});
