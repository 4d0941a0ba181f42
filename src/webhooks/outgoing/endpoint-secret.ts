import type { DestinationCipher, Sealed } from '../../encryption/destination-cipher.js';

/** The endpoint that a sealed secret belongs to. */
export interface SecretPlace {
  readonly tenant: string;
  readonly endpointId: string;
}

/** Seals a signing secret for its endpoint: a row that was copied to another endpoint does not open. */
export function sealSecret(
  cipher: Pick<DestinationCipher, 'encrypt'>,
  { tenant, endpointId }: SecretPlace,
  secret: string,
): Promise<Sealed> {
  return cipher.encrypt({ tenant, paymentId: endpointId, field: 'webhook_secret', plaintext: secret });
}

/** @throws as `DestinationCipher.decrypt`. */
export function openSecret(
  cipher: Pick<DestinationCipher, 'decrypt'>,
  { tenant, endpointId }: SecretPlace,
  sealed: Sealed,
): Promise<string> {
  return cipher.decrypt({ tenant, paymentId: endpointId, field: 'webhook_secret', ...sealed });
}
