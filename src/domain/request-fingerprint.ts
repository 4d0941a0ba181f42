import { assert } from './assert.js';
import { formatInstant, type Instant } from './instant.js';
import type { Money } from './money.js';
import type { Sha256 } from './payment-id.js';

/** The version that new rows take. Older rows are compared with their own version, for ever. */
export const FINGERPRINT_VERSION = 1;

/**
 * What a create asks for, validated. A member the client left out is absent here too: writing a
 * default in would make two different requests look alike.
 */
export interface FingerprintedCommand {
  readonly money: Money;
  /** HMAC of the destination, lower-case hex, under the digest key of the row it is compared with. */
  readonly destinationDigest: string;
  /** The word `now` stays the word: two requests that say it are the same request. */
  readonly executeAt: Instant | 'now';
  readonly notAfter?: Instant;
  readonly reference?: string;
  readonly description?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly provider?: string;
}

/**
 * The canonical text of a command: members in a fixed order, numbers and instants in one form,
 * metadata sorted by UTF-16 code unit, absent members absent. Never made from raw bytes, so that
 * white space, member order and `Z` against `+00:00` do not matter.
 * @throws Error for a version that this release does not know: a row of a newer release.
 */
export function canonicalCommand(command: FingerprintedCommand, version: number): string {
  assert(version === FINGERPRINT_VERSION, 'the fingerprint version of the row is not known to this release');
  const members: unknown[] = [
    'payment-command/v1',
    ['amount', command.money.amountMinor.toString()],
    ['currency', command.money.currency],
    ['destination_digest', command.destinationDigest],
    ['execute_at', command.executeAt === 'now' ? 'now' : formatInstant(command.executeAt)],
  ];
  if (command.notAfter !== undefined) members.push(['not_after', formatInstant(command.notAfter)]);
  if (command.reference !== undefined) members.push(['reference', command.reference]);
  if (command.description !== undefined) members.push(['description', command.description]);
  if (command.metadata !== undefined) members.push(['metadata', sortedPairs(command.metadata)]);
  if (command.provider !== undefined) members.push(['provider', command.provider]);
  return JSON.stringify(members);
}

/**
 * SHA-256 over the canonical text: 32 bytes. Equal fingerprints under one idempotency key mean a
 * replay, different ones `idempotency_key_reused`.
 * @throws Error for an unknown version, as `canonicalCommand`. Twice: the same bytes.
 */
export function requestFingerprint(
  command: FingerprintedCommand,
  version: number,
  sha256: Sha256,
): Uint8Array {
  return sha256(canonicalCommand(command, version));
}

/** JSON quotes each part, so no pair can run into the next one. */
function sortedPairs(metadata: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}
