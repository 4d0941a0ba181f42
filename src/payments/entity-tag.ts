import { DomainError } from '../domain/domain-error.js';

/** Strong entity tag of a payment: it names the version, which every move of the payment raises. */
export function entityTag(version: number): string {
  return `"v${version}"`;
}

const STRONG = /^"v([1-9][0-9]{0,9})"$/;
/** Largest version a row can have (Postgres integer). */
const MAX_VERSION = 2_147_483_647;

/**
 * The version that a client asks for with If-Match.
 * @returns null when the header is absent.
 * @throws DomainError `if_match_invalid` for anything but one strong tag of ours: a list, `*` or a
 * weak tag would leave open which version the client has seen.
 */
export function readIfMatch(header: string | undefined): number | null {
  if (header === undefined) return null;
  const version = Number(STRONG.exec(header.trim())?.[1] ?? Number.NaN);
  if (!(version <= MAX_VERSION)) throw new DomainError('if_match_invalid');
  return version;
}

/**
 * True when If-None-Match names this version, so that 304 says enough. Compared weakly (RFC 9110,
 * 13.1.2); text that is no list of tags matches nothing, and the payment is sent whole.
 */
export function isNoneMatch(header: string | undefined, version: number): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  const tag = entityTag(version);
  return header.split(',').some((part) => part.trim().replace(/^W\//, '') === tag);
}
