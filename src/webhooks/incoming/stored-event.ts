import type { ProviderEvent } from '../../providers/payment-provider.js';
import type { DestinationCipher } from '../../encryption/destination-cipher.js';
import { FOREIGN_BODY_BYTES } from '../../providers/foreign-body.js';

/** The row of the inbox that an event belongs to: no ciphertext opens at the place of another. */
export interface EventPlace {
  readonly provider: string;
  readonly account: string;
  readonly eventId: string;
}

export interface SealedEvent {
  readonly keyId: string;
  /** What the adapter understood, in full. */
  readonly event: Buffer;
  /** The first 4 KiB of what came over the wire, as evidence for people. */
  readonly body: Buffer;
}

const BIGINT = /^-?\d{1,40}n$/;

/**
 * Seals an event for its row: both parts may hold the destination. Twice: other bytes, both open.
 * @param raw the request's body, whose signature was right.
 */
export async function sealEvent(
  cipher: Pick<DestinationCipher, 'encryptAll'>,
  place: EventPlace,
  event: ProviderEvent,
  raw: Buffer,
): Promise<SealedEvent> {
  const text = JSON.stringify(event, (_name, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  );
  const { keyId, ciphertexts } = await cipher.encryptAll({
    ...cipherPlace(place),
    plaintexts: [text, beginning(raw)],
  });
  const [sealedEvent, body] = ciphertexts as readonly [Buffer, Buffer];
  return { keyId, event: sealedEvent, body };
}

/**
 * The event as it was sealed.
 * @throws UnknownKey, NotAuthentic: the row is damaged or its key is gone.
 */
export async function openEvent(
  cipher: Pick<DestinationCipher, 'decrypt'>,
  place: EventPlace,
  stored: { readonly keyId: string; readonly event: Buffer },
): Promise<ProviderEvent> {
  const text = await cipher.decrypt({ ...cipherPlace(place), keyId: stored.keyId, ciphertext: stored.event });
  // By name as well as by form: an id of the provider may look like an amount.
  return JSON.parse(text, (name, value: unknown) =>
    name === 'amountMinor' && typeof value === 'string' && BIGINT.test(value)
      ? BigInt(value.slice(0, -1))
      : value,
  ) as ProviderEvent;
}

function cipherPlace({ provider, account, eventId }: EventPlace) {
  return { tenant: `webhook:${provider}/${account}`, paymentId: eventId, field: 'foreign_body' as const };
}

/** No half character at the cut. */
function beginning(raw: Buffer): string {
  return new TextDecoder('utf-8').decode(raw.subarray(0, FOREIGN_BODY_BYTES), { stream: true });
}
