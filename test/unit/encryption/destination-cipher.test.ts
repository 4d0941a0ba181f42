import { createCipheriv, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DestinationCipher, type Sealed } from '../../../src/encryption/destination-cipher.js';
import { DestinationDigests } from '../../../src/encryption/destination-digest.js';
import { KeyRing } from '../../../src/encryption/key-ring.js';
import { NotAuthentic, UnknownKey, type UnreadableCode } from '../../../src/encryption/unreadable.js';
import { sha256 } from '../../../src/platform/sha256.js';
import { directCipher, keysOfSet } from '../../support/ciphers.js';

const key = (fill: number): string => Buffer.alloc(32, fill).toString('base64');
const keys = {
  encryption: { active: 'enc-2', keys: { 'enc-1': key(1), 'enc-2': key(2) } },
  digest: { active: 'dig-2', keys: { 'dig-1': key(3), 'dig-2': key(4) } },
};
const cipher = directCipher(keys);
const place = { tenant: 'tenant_1', paymentId: `pay_${'a'.repeat(32)}`, field: 'destination' as const };
const seal = (plaintext = 'acct_1'): Promise<Sealed> => cipher.encrypt({ ...place, plaintext });

describe('the destination cipher', () => {
  it('opens what it sealed, for every text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (plaintext) => {
        expect(await cipher.decrypt({ ...place, ...(await seal(plaintext)) })).toBe(plaintext);
      }),
    );
  });

  it('never holds the text in clear and never repeats a nonce', async () => {
    const sealed = await Promise.all(Array.from({ length: 200 }, () => seal('acct_1')));
    for (const { ciphertext } of sealed) expect(ciphertext.includes('acct_1')).toBe(false);
    expect(new Set(sealed.map(({ ciphertext }) => ciphertext.subarray(1, 13).toString('hex'))).size).toBe(
      200,
    );
  });

  it('seals under the current key and still opens rows of an older one', async () => {
    const older = directCipher({ ...keys, encryption: { ...keys.encryption, active: 'enc-1' } });
    const row = await older.encrypt({ ...place, plaintext: 'acct_1' });
    expect(row.keyId).toBe('enc-1');
    expect((await seal()).keyId).toBe('enc-2');
    expect(await cipher.decrypt({ ...place, ...row })).toBe('acct_1');
  });

  it.each([
    ['another payment', { paymentId: `pay_${'b'.repeat(32)}` }],
    ['another tenant', { tenant: 'tenant_2' }],
    ['another field', { field: 'foreign_body' as const }],
  ])('refuses a ciphertext moved to %s', async (_what, moved) => {
    await expect(cipher.decrypt({ ...place, ...(await seal()), ...moved })).rejects.toThrow(NotAuthentic);
  });

  it('refuses a ciphertext under the id of another key, also when both ids name the same key', async () => {
    const sealed = await seal();
    await expect(cipher.decrypt({ ...place, ...sealed, keyId: 'enc-1' })).rejects.toThrow(NotAuthentic);
    const twins = directCipher({
      ...keys,
      encryption: { active: 'enc-2', keys: { 'enc-2': key(2), 'enc-3': key(2) } },
    });
    await expect(twins.decrypt({ ...place, ...sealed, keyId: 'enc-3' })).rejects.toThrow(NotAuthentic);
  });

  it('says which kind of fault it is when a key was removed', async () => {
    await expect(cipher.decrypt({ ...place, ...(await seal()), keyId: 'enc-9' })).rejects.toThrow(UnknownKey);
  });

  it('refuses a short tag, although the library would take one of 4 bytes', async () => {
    const nonce = randomBytes(12);
    const short = createCipheriv('aes-256-gcm', Buffer.alloc(32, 2), nonce, { authTagLength: 4 });
    short.setAAD(Buffer.from(JSON.stringify([place.tenant, place.paymentId, place.field, 'enc-2', 1])));
    const text = Buffer.concat([short.update('x', 'utf8'), short.final()]);
    const ciphertext = Buffer.concat([Buffer.of(1), nonce, short.getAuthTag(), text]);
    await expect(cipher.decrypt({ ...place, keyId: 'enc-2', ciphertext })).rejects.toThrow(NotAuthentic);
  });

  it('refuses a tag of 4 bytes that is right, in a row that holds nothing else', async () => {
    // An empty text and a short tag: shorter than what we write, and never handed to the library.
    const nonce = randomBytes(12);
    const short = createCipheriv('aes-256-gcm', Buffer.alloc(32, 2), nonce, { authTagLength: 4 });
    short.setAAD(Buffer.from(JSON.stringify([place.tenant, place.paymentId, place.field, 'enc-2', 1])));
    short.final();
    const ciphertext = Buffer.concat([Buffer.of(1), nonce, short.getAuthTag()]);
    await expect(cipher.decrypt({ ...place, keyId: 'enc-2', ciphertext })).rejects.toThrow(NotAuthentic);
  });

  it('refuses every single changed bit and every shortened ciphertext', async () => {
    const { keyId, ciphertext } = await seal();
    for (let bit = 0; bit < ciphertext.length * 8; bit++) {
      const changed = Buffer.from(ciphertext);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      await expect(cipher.decrypt({ ...place, keyId, ciphertext: changed })).rejects.toThrow(NotAuthentic);
    }
    for (let length = 0; length < ciphertext.length; length++) {
      const shorter = ciphertext.subarray(0, length);
      await expect(cipher.decrypt({ ...place, keyId, ciphertext: shorter })).rejects.toThrow(NotAuthentic);
    }
  });

  it('opens what an independent implementation of the layout sealed', async () => {
    const nonce = Buffer.alloc(12, 7);
    const other = createCipheriv('aes-256-gcm', Buffer.alloc(32, 2), nonce);
    other.setAAD(Buffer.from(`["tenant_1","${place.paymentId}","destination","enc-2",1]`));
    const text = Buffer.concat([other.update('acct_9', 'utf8'), other.final()]);
    const ciphertext = Buffer.concat([Buffer.of(1), nonce, other.getAuthTag(), text]);
    expect(await cipher.decrypt({ ...place, keyId: 'enc-2', ciphertext })).toBe('acct_9');
  });

  it('does not show text or key in its errors', async () => {
    const error: unknown = await cipher
      .decrypt({ ...place, ...(await seal('acct_secret')), tenant: 'x' })
      .catch((caught: unknown) => caught);
    expect(inspect(error, { depth: 9 })).not.toContain('acct_secret');
    expect(String(error)).toContain(place.paymentId);
  });

  it('tells of everything that does not open, and of no fault of storage', async () => {
    const told: [string, UnreadableCode][] = [];
    const direct = keysOfSet(keys.encryption);
    const telling = new DestinationCipher({
      keys: {
        current: () => Promise.reject(new Error('away')),
        find: (tenant, id) =>
          id === 'dk_away' ? Promise.reject(new Error('away')) : direct.find(tenant, id),
      },
      digests: new DestinationDigests(keys.digest),
      onUnreadable: (...of) => told.push(of),
    });
    const sealed = await seal();
    await expect(telling.decrypt({ ...place, ...sealed, tenant: 'tenant_2' })).rejects.toThrow();
    await expect(telling.decrypt({ ...place, ...sealed, keyId: 'enc-9' })).rejects.toThrow();
    await expect(telling.decrypt({ ...place, ...sealed, keyId: 'dk_away' })).rejects.toThrow('away');
    expect(told).toEqual([
      [place.paymentId, 'destination_unreadable'],
      [place.paymentId, 'destination_key_missing'],
    ]);
  });

  it('seals several texts of a row under one key id', async () => {
    const { keyId, ciphertexts } = await cipher.encryptAll({ ...place, plaintexts: ['a', '', 'b'] });
    const opened = ciphertexts.map((ciphertext) => cipher.decrypt({ ...place, keyId, ciphertext }));
    expect(await Promise.all(opened)).toEqual(['a', '', 'b']);
  });
});

describe('a stored destination', () => {
  const row = async (destination = 'acct_1', digestOf = destination) => {
    const sealed = await cipher.encrypt({ ...place, plaintext: destination });
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

  it('opens when its digest is of the same text', async () => {
    expect(await cipher.openDestination(await row())).toBe('acct_1');
  });

  it('does not open when its digest is of another text, cut short, or under another key', async () => {
    await expect(cipher.openDestination(await row('acct_1', 'acct_2'))).rejects.toThrow(NotAuthentic);
    const good = await row();
    for (const [wrong, error] of [
      [{ destination_digest: good.destination_digest.subarray(0, 8) }, NotAuthentic],
      [{ digest_key_id: 'dig-1' }, NotAuthentic],
      [{ digest_key_id: 'dig-9' }, UnknownKey],
    ] as const) {
      await expect(cipher.openDestination({ ...good, ...wrong })).rejects.toThrow(error);
    }
  });

  it('does not open in the row of another payment, nor in one of another tenant', async () => {
    const good = await row();
    for (const moved of [{ id: `pay_${'b'.repeat(32)}` }, { tenant_id: 'tenant_2' }]) {
      await expect(cipher.openDestination({ ...good, ...moved })).rejects.toThrow(NotAuthentic);
    }
  });
});

describe('stored parameters', () => {
  const of = { tenantId: place.tenant, paymentId: place.paymentId };
  const text = '{"destination":"acct_1"}';
  const digest = Buffer.from(sha256(text));

  it('open when their SHA-256 is of the same text', async () => {
    const sealed = await cipher.sealParameters({ ...of, text });
    expect(await cipher.openParameters({ ...of, ...sealed, sha256: digest })).toBe(text);
  });

  it('do not open as those of another generation, nor as a destination', async () => {
    const sealed = await cipher.sealParameters({ ...of, text: '{"destination":"acct_2"}' });
    for (const sha of [digest, Buffer.alloc(0)]) {
      await expect(cipher.openParameters({ ...of, ...sealed, sha256: sha })).rejects.toThrow(NotAuthentic);
    }
    await expect(cipher.decrypt({ ...place, ...sealed })).rejects.toThrow(NotAuthentic);
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

  it('follows its set, and asks for the file again before it gives up on an id', () => {
    let asked = 0;
    const set = { active: 'a', keys: { a: key(1) } as Record<string, string>, refresh: () => void asked++ };
    const ring = new KeyRing(set);
    set.refresh = () => {
      asked++;
      set.keys = { ...set.keys, b: key(2) };
    };
    expect(ring.find('b').id).toBe('b');
    set.active = 'b';
    expect(ring.active.id).toBe('b');
    expect(asked).toBe(1);
    expect(() => ring.find('c')).toThrow(UnknownKey);
  });
});
