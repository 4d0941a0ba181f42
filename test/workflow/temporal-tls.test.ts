import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TemporalSettings } from '../../src/config/temporal-settings.js';
import { probeTemporal } from '../../src/orchestration/temporal-probe.js';
import { connectWorker } from '../../src/worker/temporal-worker.js';
import { createTestAuthority, type TestAuthority, type TestCertificate } from '../support/certificates.js';
import { startDevServerRig, type DevServerRig } from '../support/dev-server.js';
import { openTlsDoor, type TlsDoor } from '../support/tls-door.js';

const LIMIT_MS = 2_000;
let rig: DevServerRig;
let authority: TestAuthority;
let door: TlsDoor;
let ours: TestCertificate;
beforeAll(async () => {
  rig = await startDevServerRig();
  authority = await createTestAuthority();
  ours = await authority.issue('payments-worker');
  door = await openTlsDoor(rig.address, authority.ca, await authority.issue('localhost'));
});
afterAll(async () => {
  await door.close();
  await rig.close();
});

const settings = (ca: string, own: TestCertificate | null): TemporalSettings => ({
  address: door.address.replace('127.0.0.1', 'localhost'),
  namespace: 'default',
  tls: own && {
    serverRootCACertificate: Buffer.from(ca),
    clientCertPair: { crt: Buffer.from(own.cert), key: Buffer.from(own.key) },
  },
});

describe('Temporal behind mutual TLS', () => {
  it('answers the client and the worker that show a certificate of its authority', async () => {
    expect(await probeTemporal(settings(authority.ca, ours), LIMIT_MS)).toEqual({ kind: 'ok' });
    const connection = await connectWorker(settings(authority.ca, ours));
    await connection.close();
  });

  it('is unreachable in clear, with a stranger’s certificate, and when its own is signed by a stranger', async () => {
    const stranger = await createTestAuthority();
    const foreign = await stranger.issue('payments-worker');
    for (const wrong of [
      settings(authority.ca, null),
      settings(authority.ca, foreign),
      settings(stranger.ca, ours),
    ]) {
      expect((await probeTemporal(wrong, LIMIT_MS)).kind).toBe('unreachable');
    }
    await expect(connectWorker(settings(authority.ca, foreign))).rejects.toThrow();
  });
});
