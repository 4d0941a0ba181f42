import { isUtf8 } from 'node:buffer';
import { DomainError } from '../domain/domain-error.js';

/** Deepest nesting of objects and arrays in a request body. */
export const MAX_BODY_DEPTH = 8;

/**
 * A JSON number that its own value would not be written as: `1e3`, `10.0`, `-0`, or more digits
 * than a double holds. Not a number for any schema, so that nothing is rounded before it is seen.
 */
export class JsonNumber {
  constructor(readonly literal: string) {}
  toString(): string {
    return this.literal;
  }
}

/** Never a member's name: assigning it would replace a prototype instead of adding a member. */
const FORBIDDEN_NAME = '__proto__';
/** Integers that are their own text and lie far inside 2^53, the only numbers our clients need. */
const PLAIN_INTEGER = /^(?:0|-?[1-9][0-9]{0,14})$/;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/**
 * Reads one JSON text (RFC 8259) strictly.
 * @param body the bytes as they came.
 * @returns what JSON.parse returns, except that a number not written canonically is a `JsonNumber`.
 * @throws DomainError `body_not_utf8`, `body_byte_order_mark`, `body_syntax`, `body_too_deep`,
 * `body_duplicate_member` (compared after unescaping), `body_forbidden_member` (`__proto__`),
 * `body_forbidden_text` (NUL or a lone surrogate, escaped ones too). Linear in the size; no
 * recursion of ours, and depth is checked before JSON.parse recurses.
 */
export function parseStrictJson(body: Buffer, maxDepth = MAX_BODY_DEPTH): unknown {
  if (!isUtf8(body)) throw new DomainError('body_not_utf8');
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) throw new DomainError('body_byte_order_mark');
  const text = body.toString('utf8');
  const looksPlain = scan(text, maxDepth);
  try {
    // The reviver costs more than the parser; only escapes and unusual numbers need it.
    return looksPlain ? (JSON.parse(text) as unknown) : (JSON.parse(text, inspect as Reviver) as unknown);
  } catch (error) {
    throw error instanceof DomainError ? error : new DomainError('body_syntax');
  }
}

type Reviver = (key: string, value: unknown) => unknown;

/** `context.source` (ECMAScript 2026) is the literal as it was written. */
function inspect(key: string, value: unknown, context: { readonly source?: string }): unknown {
  refuseText(key);
  if (typeof value === 'string') refuseText(value);
  if (typeof value !== 'number') return value;
  return String(value) === context.source ? value : new JsonNumber(context.source ?? '');
}

function refuseText(text: string): void {
  if (!text.isWellFormed() || text.includes('\0')) throw new DomainError('body_forbidden_text');
}

/**
 * One pass over the tokens: depth, duplicate and forbidden names. Whether the text is JSON at all
 * is left to JSON.parse, so this pass only has to be right about texts that are.
 * @returns true when no number and no escape needs a closer look.
 */
function scan(text: string, maxDepth: number): boolean {
  /** The names of each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let looksPlain = true;
  let at = 0;
  /** The last token when it is a string, else null: a name is a string before a colon. */
  let lastString: { readonly text: string; readonly escaped: boolean } | null = null;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      at++;
      continue;
    }
    if (code === QUOTE) {
      const end = stringEnd(text, at);
      const inner = text.slice(at + 1, end.at);
      if (end.unicodeEscape) looksPlain = false;
      lastString = { text: inner, escaped: end.escaped };
      at = end.at + 1;
      continue;
    }
    if (code === COLON) {
      if (lastString !== null) enterName(open.at(-1), lastString);
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (open.push(code === OPEN_BRACE ? new Set() : undefined) > maxDepth) {
        throw new DomainError('body_too_deep');
      }
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      open.pop();
    } else if (code !== COMMA) {
      const end = scalarEnd(text, at);
      const first = text.charCodeAt(at);
      const isWord = first === 0x74 || first === 0x66 || first === 0x6e;
      if (!isWord && !PLAIN_INTEGER.test(text.slice(at, end))) looksPlain = false;
      at = end - 1;
    }
    lastString = null;
    at++;
  }
  return looksPlain;
}

/** Where the string that opens at `from` closes; the end of the text when it never does. */
function stringEnd(text: string, from: number): { at: number; escaped: boolean; unicodeEscape: boolean } {
  let escaped = false;
  let unicodeEscape = false;
  let at = from + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) break;
    if (code === BACKSLASH) {
      escaped = true;
      if (text.charCodeAt(at + 1) === LOWER_U) unicodeEscape = true;
      at++;
    }
    at++;
  }
  return { at, escaped, unicodeEscape };
}

/** The end of a run that holds no white space and no character of the structure; at least one on. */
function scalarEnd(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code <= 0x20 || code === COMMA || code === COLON || code === QUOTE) break;
    if (code === CLOSE_BRACE || code === CLOSE_BRACKET || code === OPEN_BRACE || code === OPEN_BRACKET) break;
    at++;
  }
  return at;
}

function enterName(names: Set<string> | undefined, token: { text: string; escaped: boolean }): void {
  const name = token.escaped ? unescape(token.text) : token.text;
  if (name === FORBIDDEN_NAME) throw new DomainError('body_forbidden_member');
  if (names === undefined) return;
  if (names.has(name)) throw new DomainError('body_duplicate_member');
  names.add(name);
}

function unescape(inner: string): string {
  try {
    return JSON.parse(`"${inner}"`) as string;
  } catch {
    throw new DomainError('body_syntax');
  }
}
