import { createCipheriv, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DestinationCipher, NotAuthentic, type Sealed } from '../../../src/encryption/destination-cipher.js';
import { DestinationDigests } from '../../../src/encryption/destination-digest.js';
import { KeyRing, UnknownKey } from '../../../src/encryption/key-ring.js';
import { sha256 } from '../../../src/platform/sha256.js';

const key = (fill: number): string => Buffer.alloc(32, fill).toString('base64');
const keys = {
  encryption: { active: 'enc-2', keys: { 'enc-1': key(1), 'enc-2': key(2) } },
  digest: { active: 'dig-2', keys: { 'dig-1': key(3), 'dig-2': key(4) } },
};
const cipher = new DestinationCipher(keys);
const place = { tenant: 'tenant_1', paymentId: `pay_${'a'.repeat(32)}`, field: 'destination' as const };
const seal = (plaintext = 'acct_1'): Sealed => cipher.encrypt({ ...place, plaintext });

describe('the destination cipher', () => {
  it('opens what it sealed, for every text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (plaintext) => {
        expect(cipher.decrypt({ ...place, ...seal(plaintext) })).toBe(plaintext);
      }),
    );
  });

  it('never holds the text in clear and never repeats a nonce', () => {
    const sealed = Array.from({ length: 200 }, () => seal('acct_1').ciphertext);
    for (const bytes of sealed) expect(bytes.includes('acct_1')).toBe(false);
    expect(new Set(sealed.map((bytes) => bytes.subarray(1, 13).toString('hex'))).size).toBe(200);
  });

  it('seals under the active key and still opens rows of an older one', () => {
    const older = new DestinationCipher({ ...keys, encryption: { ...keys.encryption, active: 'enc-1' } });
    const row = older.encrypt({ ...place, plaintext: 'acct_1' });
    expect(row.keyId).toBe('enc-1');
    expect(seal().keyId).toBe('enc-2');
    expect(cipher.decrypt({ ...place, ...row })).toBe('acct_1');
  });

  it.each([
    ['another payment', { paymentId: `pay_${'b'.repeat(32)}` }],
    ['another tenant', { tenant: 'tenant_2' }],
    ['another field', { field: 'foreign_body' as const }],
  ])('refuses a ciphertext moved to %s', (_what, moved) => {
    expect(() => cipher.decrypt({ ...place, ...seal(), ...moved })).toThrow(NotAuthentic);
  });

  it('refuses a ciphertext under the id of another key, also when both ids name the same key', () => {
    expect(() => cipher.decrypt({ ...place, ...seal(), keyId: 'enc-1' })).toThrow(NotAuthentic);
    const twins = new DestinationCipher({
      ...keys,
      encryption: { active: 'enc-2', keys: { 'enc-2': key(2), 'enc-3': key(2) } },
    });
    expect(() => twins.decrypt({ ...place, ...seal(), keyId: 'enc-3' })).toThrow(NotAuthentic);
  });

  it('says which kind of fault it is when a key was removed', () => {
    expect(() => cipher.decrypt({ ...place, ...seal(), keyId: 'enc-9' })).toThrow(UnknownKey);
  });

  it('refuses a short tag, although the library would take one of 4 bytes', () => {
    const nonce = randomBytes(12);
    const short = createCipheriv('aes-256-gcm', Buffer.alloc(32, 2), nonce, { authTagLength: 4 });
    short.setAAD(Buffer.from(JSON.stringify([place.tenant, place.paymentId, place.field, 'enc-2', 1])));
    const text = Buffer.concat([short.update('x', 'utf8'), short.final()]);
    const ciphertext = Buffer.concat([Buffer.of(1), nonce, short.getAuthTag(), text]);
    expect(() => cipher.decrypt({ ...place, keyId: 'enc-2', ciphertext })).toThrow(NotAuthentic);
  });

  it('refuses every single changed bit and every shortened ciphertext', () => {
    const { keyId, ciphertext } = seal();
    for (let bit = 0; bit < ciphertext.length * 8; bit++) {
      const changed = Buffer.from(ciphertext);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => cipher.decrypt({ ...place, keyId, ciphertext: changed })).toThrow(NotAuthentic);
    }
    for (let length = 0; length < ciphertext.length; length++) {
      const shorter = ciphertext.subarray(0, length);
      expect(() => cipher.decrypt({ ...place, keyId, ciphertext: shorter })).toThrow(NotAuthentic);
    }
  });

  it('opens what an independent implementation of the layout sealed', () => {
    const nonce = Buffer.alloc(12, 7);
    const other = createCipheriv('aes-256-gcm', Buffer.alloc(32, 2), nonce);
    other.setAAD(Buffer.from(`["tenant_1","${place.paymentId}","destination","enc-2",1]`));
    const text = Buffer.concat([other.update('acct_9', 'utf8'), other.final()]);
    const ciphertext = Buffer.concat([Buffer.of(1), nonce, other.getAuthTag(), text]);
    expect(cipher.decrypt({ ...place, keyId: 'enc-2', ciphertext })).toBe('acct_9');
  });

  it('does not show text or key in its errors', () => {
    try {
      cipher.decrypt({ ...place, ...seal('acct_secret'), tenant: 'x' });
      expect.unreachable();
    } catch (error) {
      expect(inspect(error, { depth: 9 })).not.toContain('acct_secret');
      expect(String(error)).toContain(place.paymentId);
    }
  });
});

describe('a stored destination', () => {
  const row = (destination = 'acct_1', digestOf = destination) => {
    const sealed = cipher.encrypt({ ...place, plaintext: destination });
    const { keyId, digest } = cipher.digests.digest(digestOf);
    return {
      id: place.paymentId,
      tenant_id: place.tenant,
      destination: sealed.ciphertext,
      destination_key_id: sealed.keyId,
      destination_digest: digest,
      digest_key_id: keyId,
    };
  };

  it('opens when its digest is of the same text', () => {
    expect(cipher.openDestination(row())).toBe('acct_1');
  });

  it('does not open when its digest is of another text, cut short, or under another key', () => {
    expect(() => cipher.openDestination(row('acct_1', 'acct_2'))).toThrow(NotAuthentic);
    const good = row();
    expect(() =>
      cipher.openDestination({ ...good, destination_digest: good.destination_digest.subarray(0, 8) }),
    ).toThrow(NotAuthentic);
    expect(() => cipher.openDestination({ ...good, digest_key_id: 'dig-1' })).toThrow(NotAuthentic);
    expect(() => cipher.openDestination({ ...good, digest_key_id: 'dig-9' })).toThrow(UnknownKey);
  });

  it('does not open in the row of another payment', () => {
    expect(() => cipher.openDestination({ ...row(), id: `pay_${'b'.repeat(32)}` })).toThrow(NotAuthentic);
  });
});

describe('stored parameters', () => {
  const of = { tenantId: place.tenant, paymentId: place.paymentId };
  const text = '{"destination":"acct_1"}';
  const digest = Buffer.from(sha256(text));

  it('open when their SHA-256 is of the same text', () => {
    expect(cipher.openParameters({ ...of, ...cipher.sealParameters({ ...of, text }), sha256: digest })).toBe(
      text,
    );
  });

  it('do not open as those of another generation, nor as a destination', () => {
    const sealed = cipher.sealParameters({ ...of, text: '{"destination":"acct_2"}' });
    expect(() => cipher.openParameters({ ...of, ...sealed, sha256: digest })).toThrow(NotAuthentic);
    expect(() => cipher.openParameters({ ...of, ...sealed, sha256: Buffer.alloc(0) })).toThrow(NotAuthentic);
    expect(() => cipher.decrypt({ ...place, ...sealed })).toThrow(NotAuthentic);
  });
});

describe('a destination digest', () => {
  const digests = new DestinationDigests(keys.digest);

  it('is the same for the same text under the same key, and names its key', () => {
    const first = digests.digest('acct_1');
    expect(first.keyId).toBe('dig-2');
    expect(first.digest).toHaveLength(32);
    expect(digests.digest('acct_1')).toEqual(first);
    expect(digests.digestWith('dig-2', 'acct_1')).toEqual(first);
  });

  it('is another one under another key, for another text, and is no plain hash', () => {
    const { digest } = digests.digest('acct_1');
    expect(digests.digestWith('dig-1', 'acct_1').digest.equals(digest)).toBe(false);
    expect(digests.digest('acct_2').digest.equals(digest)).toBe(false);
    expect(Buffer.from(sha256('acct_1')).equals(digest)).toBe(false);
  });

  it('under a key that is gone fails instead of comparing with another', () => {
    expect(() => digests.digestWith('dig-9', 'acct_1')).toThrow(UnknownKey);
  });
});

describe('a key ring', () => {
  it('refuses a key that is not 32 bytes and an active key it does not hold', () => {
    expect(() => new KeyRing({ active: 'a', keys: { a: Buffer.alloc(16).toString('base64') } })).toThrow(
      '32 bytes',
    );
    expect(() => new KeyRing({ active: 'b', keys: { a: key(1) } })).toThrow(UnknownKey);
  });

  it('does not take the name of an object member for a key', () => {
    expect(() => new KeyRing({ active: 'constructor', keys: { a: key(1) } })).toThrow(UnknownKey);
  });

  it('does not print its keys', () => {
    const ring = new KeyRing({ active: 'a', keys: { a: key(0x41) } });
    expect(inspect(ring, { depth: 9, showHidden: true })).not.toContain('AAAA');
    expect(JSON.stringify(ring)).not.toContain(key(0x41));
  });
});
