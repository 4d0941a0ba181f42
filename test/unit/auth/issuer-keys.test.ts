import { describe, expect, it } from 'vitest';
import { exportJWK, generateKeyPair } from 'jose';
import { IssuerKeys, IssuerUnavailable } from '../../../src/auth/issuer-keys.js';

const jwk = async (kid: string) => ({
  ...(await exportJWK((await generateKeyPair('EdDSA', { extractable: true })).publicKey)),
  kid,
  alg: 'EdDSA',
});

/** An issuer that counts its readings, on a clock of the test. */
async function issuer(...kids: string[]) {
  const world = {
    nowMs: 1_000_000,
    reads: 0,
    isAway: false,
    keys: await Promise.all(kids.map(jwk)),
  };
  const keys = new IssuerKeys(
    () => {
      world.reads++;
      return world.isAway ? Promise.reject(new Error('away')) : Promise.resolve({ keys: world.keys });
    },
    () => world.nowMs,
  );
  const ask = (kid: string | undefined): Promise<unknown> =>
    Promise.resolve(keys.keyFor({ alg: 'EdDSA', kid } as never, {} as never)).then(
      () => 'found',
      (error: unknown) => (error instanceof IssuerUnavailable ? 'unavailable' : 'no such key'),
    );
  return { world, ask };
}

describe('the keys of the issuer', () => {
  it('are read once for many tokens', async () => {
    const { world, ask } = await issuer('a');
    expect(await Promise.all(Array.from({ length: 20 }, () => ask('a')))).toEqual(Array(20).fill('found'));
    expect(world.reads).toBe(1);
  });

  it('are read again for an unknown id, at most once a minute', async () => {
    const { world, ask } = await issuer('a');
    await ask('a');
    world.keys.push(await jwk('b'));
    for (let i = 0; i < 5; i++) expect(await ask('b')).toBe('no such key');
    world.nowMs += 59_999;
    expect(await ask('b')).toBe('no such key');
    expect(world.reads).toBe(1);
    world.nowMs += 1;
    expect(await ask('b')).toBe('found');
    expect(await ask('c')).toBe('no such key');
    expect(world.reads).toBe(2);
  });

  it('that were withdrawn stop within ten minutes', async () => {
    const { world, ask } = await issuer('a', 'b');
    await ask('a');
    world.keys.shift();
    world.nowMs += 600_000;
    expect(await ask('a')).toBe('no such key');
    expect(await ask('b')).toBe('found');
  });

  it('go on for an hour while the issuer is away, asked for once a minute', async () => {
    const { world, ask } = await issuer('a');
    await ask('a');
    world.isAway = true;
    world.nowMs += 600_000;
    for (let i = 0; i < 5; i++) expect(await ask('a')).toBe('found');
    expect(world.reads).toBe(2);
    world.nowMs += 3_000_000;
    expect(await ask('a')).toBe('unavailable');
    world.isAway = false;
    world.nowMs += 60_000;
    expect(await ask('a')).toBe('found');
  });

  it('are asked for again after 5 s when there are none yet', async () => {
    const { world, ask } = await issuer('a');
    world.isAway = true;
    expect(await ask('a')).toBe('unavailable');
    world.isAway = false;
    expect(await ask('a')).toBe('unavailable');
    expect(world.reads).toBe(1);
    world.nowMs += 5_000;
    expect(await ask('a')).toBe('found');
  });

  it('are never tried one after the other for a token that names none', async () => {
    const { ask } = await issuer('a');
    expect(await ask(undefined)).toBe('no such key');
  });
});
