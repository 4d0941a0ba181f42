import { describe, expect, it } from 'vitest';
import { apiKeyDigest, newApiKey, parseApiKey } from '../../../src/auth/api-key.js';

const pepper = Buffer.alloc(32, 7);

describe('an API key', () => {
  it('has one pattern that a secret scanner can look for', () => {
    for (const mode of ['live', 'test'] as const) {
      const { text, parts } = newApiKey(mode);
      expect(text).toMatch(/^ps_(live|test)_[a-z2-7]{12}_[a-z2-7]{59}$/);
      expect(parts).toMatchObject({ mode, id: text.slice(8, 20) });
      expect(parseApiKey(text)).toEqual(parts);
    }
  });

  it('is never made twice', () => {
    const made = Array.from({ length: 1_000 }, () => newApiKey('test'));
    expect(new Set(made.map((key) => key.text)).size).toBe(1_000);
    expect(new Set(made.map((key) => key.parts.id)).size).toBe(1_000);
  });

  it('with any one character changed is refused without a read', () => {
    const { text } = newApiKey('test');
    for (let at = 0; at < text.length; at++) {
      for (const other of ['a', 'q', '7', 'A', ' ', '0']) {
        if (other === text[at]) continue;
        expect(parseApiKey(text.slice(0, at) + other + text.slice(at + 1))).toBeNull();
      }
    }
  });

  it('with two neighbours swapped, cut, extended or of another mode is refused', () => {
    const { text } = newApiKey('test');
    for (let at = 0; at + 1 < text.length; at++) {
      const swapped = text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2);
      if (swapped !== text) expect(parseApiKey(swapped)).toBeNull();
    }
    for (const wrong of ['', text.slice(1), text.slice(0, -1), `${text}a`, ` ${text}`, `${text}\n`]) {
      expect(parseApiKey(wrong)).toBeNull();
    }
    expect(parseApiKey(text.replace('ps_test_', 'ps_live_'))).toBeNull();
  });

  it('has a digest that depends on the secret, the id, the mode and the pepper', () => {
    const { parts } = newApiKey('test');
    const digest = apiKeyDigest(parts, pepper);
    expect(digest).toHaveLength(32);
    expect(apiKeyDigest(parts, pepper)).toEqual(digest);
    expect(apiKeyDigest(parts, Buffer.alloc(32, 8))).not.toEqual(digest);
    expect(apiKeyDigest(newApiKey('test').parts, pepper)).not.toEqual(digest);
    const asLive = { ...parts, signed: parts.signed.replace('_test_', '_live_') };
    expect(apiKeyDigest(asLive, pepper)).not.toEqual(digest);
  });
});
