import { describe, expect, it } from 'vitest';
import { newApiKey } from '../../../src/auth/api-key.js';
import { readCredential } from '../../../src/auth/credential.js';

const key = newApiKey('test');
const token = `${'a'.repeat(40)}.${'b'.repeat(40)}.${'c'.repeat(40)}`;

describe('an Authorization header', () => {
  it('is a key or a token by its form, with the scheme in any case', () => {
    for (const header of [`Bearer ${key.text}`, `bearer   ${key.text} `, `BEARER ${key.text}`]) {
      expect(readCredential(header)).toEqual({ kind: 'api_key', parts: key.parts, text: key.text });
    }
    expect(readCredential([`Bearer ${token}`])).toEqual({ kind: 'token', text: token });
    expect(readCredential(undefined)).toEqual({ kind: 'none' });
    expect(readCredential([])).toEqual({ kind: 'none' });
  });

  it.each([
    ['sent twice, whichever would do', [`Bearer ${key.text}`, `Bearer ${key.text}`]],
    ['joined of two by a proxy', `Bearer ${key.text}, Bearer ${key.text}`],
    ['of another scheme', `Basic ${key.text}`],
    ['without a scheme', key.text],
    ['without a credential', 'Bearer '],
    [
      'with a typing error in the key',
      `Bearer ${key.text.slice(0, -1)}${key.text.endsWith('a') ? 'b' : 'a'}`,
    ],
    ['in capitals', `Bearer ${key.text.toUpperCase()}`],
    ['with more after the key', `Bearer ${key.text}\n`],
    ['with a key as a part of a longer text', `Bearer x${key.text}`],
    ['longer than 8 KiB', `Bearer ${'a'.repeat(4_000)}.${'b'.repeat(4_000)}.${'c'.repeat(300)}`],
    ['a token of five parts: encrypted ones are nothing that we take', `Bearer ${token}.d.e`],
  ])('is malformed %s', (_what, lines) => {
    expect(readCredential(lines)).toEqual({ kind: 'malformed' });
  });
});
