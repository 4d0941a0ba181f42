import { DONE, answerOf, refusal } from '../control-port.js';
import type { ControlAnswer, ControlCommand } from '../control-port.js';
import { isRecord } from '../fault.js';
import { paymentIdOf } from '../payout-book.js';
import type { LedgerRecord } from '../payout-book.js';
import { readEndpoint } from './webhook-endpoint.js';
import type { WebhookEndpoint } from './webhook-endpoint.js';
import type { WebhookSender } from './webhook-sender.js';

export interface WebhookCommandParts {
  readonly webhooks: WebhookSender;
  readonly endpointOf: (account: string) => WebhookEndpoint | null;
  readonly accountNames: ReadonlySet<string>;
  readonly record: (record: LedgerRecord) => void;
  readonly whenWritten: (callback: () => void) => void;
}

/** Where events go, what was sent and answered, and sending it once more. Never shows a secret. */
export function webhookCommands(parts: WebhookCommandParts): [string, ControlCommand][] {
  const { webhooks, endpointOf, accountNames, record, whenWritten } = parts;
  return [
    [
      'GET /webhooks',
      () => {
        const endpoints = [...accountNames].flatMap((account) => {
          const endpoint = endpointOf(account);
          return endpoint ? [{ account, url: endpoint.url, scheme: endpoint.scheme }] : [];
        });
        return answerOf({ pending: webhooks.pending, endpoints });
      },
    ],
    [
      'POST /webhooks',
      (_query, body) => {
        const given = isRecord(body) ? body : {};
        const { account } = given;
        if (typeof account !== 'string' || !accountNames.has(account)) {
          return refusal(400, `Give the account. Accounts: ${[...accountNames].join(', ')}.`);
        }
        const read = given['url'] === null ? { endpoint: null } : readEndpoint(given);
        if ('wrong' in read) return refusal(400, read.wrong);
        record({ type: 'endpoint', account, endpoint: read.endpoint });
        return new Promise<ControlAnswer>((resolve) => whenWritten(() => resolve(DONE)));
      },
    ],
    [
      'GET /webhooks/deliveries',
      (query) =>
        answerOf({ pending: webhooks.pending, deliveries: webhooks.log.list(query.get('reference')) }),
    ],
    [
      'POST /webhooks/redeliver',
      (_query, body) => {
        const reference = isRecord(body) ? body['reference'] : undefined;
        if (typeof reference !== 'string') return refusal(400, 'Give {"reference": payment id}.');
        return answerOf({ events: webhooks.redeliver(paymentIdOf(reference)) });
      },
    ],
  ];
}
