import { DomainError } from '../../domain/domain-error.js';
import type { DestinationCipher } from '../../encryption/destination-cipher.js';
import { webhookInTotal } from '../../metrics/metrics.js';
import type { Sql } from '../../persistence/database.js';
import { wallMs } from '../../platform/clock.js';
import type { ProviderEvent, WebhookHeaders } from '../../providers/payment-provider.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { sealEvent } from './stored-event.js';
import { insertEvent } from './webhook-inbox.store.js';

export interface ReceiveParts {
  readonly sql: Sql;
  readonly providers: Pick<ProviderRegistry, 'get'>;
  readonly cipher: Pick<DestinationCipher, 'encryptAll'>;
  /** `<provider>/<account>` to its signing secrets: one, or two while one is being replaced. */
  readonly secrets: ReadonlyMap<string, readonly string[]>;
}

/** What is stored in columns of their own; anything else of an event is sealed. */
const EVENT_ID = /^[!-~]{1,255}$/;
const EVENT_TYPE = /^[\w.:-]{1,100}$/;

/** Receives events of providers: verified over their raw bytes, stored once, processed later. */
export class ReceiveWebhook {
  constructor(private readonly parts: ReceiveParts) {}

  /**
   * Stores one event. When this returns, the event is committed and may be acknowledged.
   * @param name as in the path; @param raw the body as it came, not parsed by anybody.
   * @returns `duplicate` for an event id that is known; nothing new is stored then.
   * @throws DomainError `not_found` for a provider that has no webhooks here; `signature_invalid`,
   * the same for every reason; `event_unreadable`; faults of storage: the provider sends it again.
   */
  async receive(name: string, raw: Buffer, headers: WebhookHeaders): Promise<'stored' | 'duplicate'> {
    const provider = this.parts.providers.get(name);
    const secrets = provider && this.parts.secrets.get(`${name}/${provider.account}`);
    if (!provider || !secrets) {
      webhookInTotal.add({ provider: 'unknown', result: 'unknown_provider' });
      throw new DomainError('not_found');
    }
    const reading = provider.parseWebhook(raw, headers, secrets, wallMs());
    if (reading.kind === 'refused') {
      webhookInTotal.add({ provider: name, result: reading.reason });
      throw new DomainError(reading.reason === 'unreadable' ? 'event_unreadable' : 'signature_invalid');
    }
    const { event } = reading;
    if (!isStorable(event)) {
      webhookInTotal.add({ provider: name, result: 'unreadable' });
      throw new DomainError('event_unreadable');
    }
    const place = { provider: name, account: provider.account, eventId: event.eventId };
    const isNew = await insertEvent(this.parts.sql, {
      ...place,
      type: event.type,
      occurredAtMs: event.occurredAtMs,
      ...(await sealEvent(this.parts.cipher, place, event, raw)),
    });
    const result = isNew ? 'stored' : 'duplicate';
    webhookInTotal.add({ provider: name, result });
    return result;
  }
}

function isStorable({ eventId, type, occurredAtMs }: ProviderEvent): boolean {
  const isTime = occurredAtMs === null || Math.abs(occurredAtMs) < 8.64e15;
  return EVENT_ID.test(eventId) && EVENT_TYPE.test(type) && isTime;
}
