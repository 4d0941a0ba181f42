import { randomBytes, randomUUID } from 'node:crypto';
import type { Fault, WebhookFaultKind } from '../fault.js';
import { newEventId } from './webhook-event.js';
import type { ProviderEvent } from './webhook-event.js';
import type { WebhookEndpoint } from './webhook-endpoint.js';

/** Further from the receiver's clock than any receiver may accept. */
const SHIFT_S = 600;
const OVERSIZED_BYTES = 1024 * 1024;

/** A stray delivery that comes before the event: sent once, whatever it is answered. */
export interface Stray {
  readonly event: ProviderEvent;
  readonly endpoint: WebhookEndpoint;
  /** A member that makes the body longer. */
  readonly padding: string | null;
}

/** The delivery that the fault puts before the event; null: none. */
export function strayOf(fault: Fault, event: ProviderEvent, endpoint: WebhookEndpoint): Stray | null {
  const honest = { endpoint, padding: null };
  const copy = { ...event, id: newEventId() };
  const { object } = event.data;
  switch (fault.kind as WebhookFaultKind) {
    case 'forged':
      return {
        event: { ...copy, data: { object: lied(object) } },
        endpoint: forger(endpoint),
        padding: null,
      };
    case 'other_account':
      return { ...honest, event: { ...copy, account: 'acct_of_somebody_else' } };
    case 'unknown_reference':
      return {
        ...honest,
        event: {
          ...copy,
          data: { object: strangers(object) },
          request: { idempotency_key: randomUUID() },
        },
      };
    case 'unknown_type':
      return { ...honest, event: { ...copy, type: event.type.replace(/[.].*/, '.reticulated') } };
    case 'oversized':
      return { ...honest, event: copy, padding: 'x'.repeat(OVERSIZED_BYTES) };
    case 'none':
    case 'drop':
    case 'duplicate':
    case 'reorder':
    case 'early':
    case 'old':
    case 'future':
      return null;
  }
}

/** Seconds by which the first delivery's time stamp is wrong; later ones are honest. */
export function firstShiftOf({ kind }: Fault): number {
  if (kind === 'old') return -SHIFT_S;
  return kind === 'future' ? SHIFT_S : 0;
}

/** The same endpoint in the hands of somebody who does not know its secrets. */
function forger(endpoint: WebhookEndpoint): WebhookEndpoint {
  return { ...endpoint, secrets: [`whsec_${randomBytes(32).toString('base64')}`] };
}

/** What a forger would like to be believed. */
function lied(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { ...object, status: object['status'] === 'failed' ? 'succeeded' : 'failed' };
}

function strangers(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const nobody = `pay_${randomBytes(16).toString('hex')}`;
  return {
    ...object,
    id: `${String(object['id']).replace(/_.*/s, '')}_${randomBytes(12).toString('hex')}`,
    ...('reference' in object && { reference: `${nobody}/1` }),
    ...('transfer_group' in object && { transfer_group: nobody }),
    ...('metadata' in object && { metadata: { payment_id: nobody, generation: '1' } }),
  };
}
