import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;

/** A certificate with its private key (PKCS 8), both in PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface TestAuthority {
  /** The authority's own certificate: what the other side trusts. */
  readonly ca: string;
  /** Issues one for these DNS names and IP addresses, valid for a day; of use for servers and clients. */
  issue(name: string, ...others: readonly string[]): Promise<TestCertificate>;
}

/** An authority of its own for one test: nobody else trusts it, and it lives in memory only. */
export async function createTestAuthority(): Promise<TestAuthority> {
  const span = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
  const keys = await newKeys();
  const ca = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Test authority',
    keys,
    signingAlgorithm: ALGORITHM,
    ...span,
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  });
  return {
    ca: ca.toString('pem'),
    issue: async (...names) => {
      const own = await newKeys();
      const cert = await X509CertificateGenerator.create({
        subject: `CN=${names[0]}`,
        issuer: ca.subject,
        signingKey: keys.privateKey,
        publicKey: own.publicKey,
        signingAlgorithm: ALGORITHM,
        ...span,
        extensions: [
          new SubjectAlternativeNameExtension(
            names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
          ),
        ],
      });
      const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', own.privateKey);
      return { cert: cert.toString('pem'), key: PemConverter.encode(pkcs8, 'PRIVATE KEY') };
    },
  };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}
