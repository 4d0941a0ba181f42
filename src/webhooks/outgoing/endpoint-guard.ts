import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Where an event of ours may be sent. A client chooses the address, so everything here assumes that
 * it was chosen to reach something that only this host can reach.
 */

export interface GuardPolicy {
  /** Ports beside 443. */
  readonly ports: readonly number[];
  /** Development only: hosts and addresses of this machine, on any port, also without TLS. */
  readonly allowLoopback: boolean;
}

/** Why a URL is refused; a closed list, and none of it repeats the URL. */
export type UrlRefusal =
  | 'malformed'
  | 'not_https'
  | 'has_credentials'
  | 'has_fragment'
  | 'ip_literal'
  | 'host_not_public'
  | 'port_not_allowed';

export type UrlVerdict =
  { readonly kind: 'allowed'; readonly url: URL } | { readonly kind: 'refused'; readonly reason: UrlRefusal };

/** Longest URL of an endpoint, in characters. */
export const LONGEST_URL = 2_048;
/** Visible ASCII without what browsers and parsers read in different ways. An IDN is given in punycode. */
const PLAIN = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[!#-;=?-[\]_a-z~]+$/;
/** The host as it was written; what the parser makes of it has to be the same. */
const WRITTEN_HOST = /^[A-Za-z]+:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)/;
const HOST = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** Names that no public name server answers for (RFC 6761, 6762, 7686, 8375, ICANN's `internal`). */
const NOT_PUBLIC = ['localhost', 'local', 'internal', 'home.arpa', 'onion', 'test', 'invalid', 'localdomain'];
const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Judges the URL of an endpoint by its text alone; nothing is resolved. https, a name and no address,
 * port 443 or a listed one, no credentials, no fragment.
 */
export function judgeUrl(text: string, policy: GuardPolicy): UrlVerdict {
  const refused = (reason: UrlRefusal): UrlVerdict => ({ kind: 'refused', reason });
  if (text.length > LONGEST_URL || !PLAIN.test(text) || !URL.canParse(text)) return refused('malformed');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || text.includes('@')) return refused('has_credentials');
  if (url.hash !== '' || text.includes('#')) return refused('has_fragment');
  if (policy.allowLoopback && isLoopbackUrl(url)) return { kind: 'allowed', url };
  if (url.protocol !== 'https:') return refused('not_https');
  if (isAddress(url.hostname)) return refused('ip_literal');
  // `0x7f.1`, a percent sign or a full stop of another script: the parser made something else of it.
  if (WRITTEN_HOST.exec(text)?.[1]?.toLowerCase() !== url.hostname) return refused('malformed');
  if (!HOST.test(url.hostname) || isSpecialName(url.hostname)) return refused('host_not_public');
  const port = url.port === '' ? 443 : Number(url.port);
  if (port !== 443 && !policy.ports.includes(port)) return refused('port_not_allowed');
  return { kind: 'allowed', url };
}

/** True when the URL names this very machine, which development may allow. */
export function isLoopbackUrl(url: URL): boolean {
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  return isWeb && LOOPBACK_HOSTS.includes(url.hostname);
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || isIP(hostname) !== 0;
}

function isSpecialName(hostname: string): boolean {
  return NOT_PUBLIC.some((name) => hostname === name || hostname.endsWith(`.${name}`));
}

/** All that is handed out for use on the public internet lies in here (IANA, IPv6 global unicast). */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

/**
 * True for an address that anybody on the internet could reach: neither private, shared (CGNAT),
 * link-local, loopback, multicast, reserved, documentation or benchmark, nor one that carries an IPv4
 * address inside (mapped, NAT64, 6to4, Teredo), which could be any of those.
 * @param text an address as a name server gave it; anything else is not public.
 */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0 || text.includes('%')) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST);
}

export function isLoopbackAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%') && ipaddr.parse(text).range() === 'loopback';
}

/**
 * True when every address that the name resolved to may be dialled: one bad among good ones is an
 * attempt, and an empty answer is nothing to dial.
 */
export function mayDial(addresses: readonly string[], policy: Pick<GuardPolicy, 'allowLoopback'>): boolean {
  const allowed = (text: string): boolean =>
    isPublicAddress(text) || (policy.allowLoopback && isLoopbackAddress(text));
  return addresses.length > 0 && addresses.every(allowed);
}
