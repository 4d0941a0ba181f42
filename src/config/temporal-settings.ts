import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** The members of the environment that say where Temporal is and who we are to it. */
export const TemporalEnvironment = {
  PAYMENTS_TEMPORAL_ADDRESS: z.string().min(1).default('127.0.0.1:7233'),
  PAYMENTS_TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  PAYMENTS_TEMPORAL_TLS_CA_FILE: z.string().min(1).optional(),
  PAYMENTS_TEMPORAL_TLS_CERT_FILE: z.string().min(1).optional(),
  PAYMENTS_TEMPORAL_TLS_KEY_FILE: z.string().min(1).optional(),
  PAYMENTS_TEMPORAL_TLS_SERVER_NAME: z.string().min(1).optional(),
};

/** Both sides show a certificate. In the form that the client and the worker of the SDK take. */
export interface TemporalTls {
  /** PEM of the authority that signs the server's certificate; absent: the system's authorities. */
  readonly serverRootCACertificate?: Buffer;
  /** The name in the server's certificate, when the address has another. */
  readonly serverNameOverride?: string;
  /** PEM of our certificate and its private key. */
  readonly clientCertPair: { readonly crt: Buffer; readonly key: Buffer };
}

export interface TemporalSettings {
  /** `host:port` of the front end. */
  readonly address: string;
  readonly namespace: string;
  /** null: an open connection, which only development takes. */
  readonly tls: TemporalTls | null;
}

/**
 * @throws Error when half of the TLS settings is set, a file cannot be read, or production has none:
 * whoever reaches the namespace may cancel payments, so its door asks for a certificate.
 */
export function temporalSettingsOf(
  env: z.infer<z.ZodObject<typeof TemporalEnvironment>>,
  mode: 'development' | 'production',
): TemporalSettings {
  const tls = tlsOf(env);
  if (tls === null && mode === 'production') {
    throw new Error(
      'Production reaches Temporal by mutual TLS only: set PAYMENTS_TEMPORAL_TLS_CERT_FILE and ' +
        'PAYMENTS_TEMPORAL_TLS_KEY_FILE.',
    );
  }
  return Object.freeze({
    address: env.PAYMENTS_TEMPORAL_ADDRESS,
    namespace: env.PAYMENTS_TEMPORAL_NAMESPACE,
    tls,
  });
}

function tlsOf(env: z.infer<z.ZodObject<typeof TemporalEnvironment>>): TemporalTls | null {
  const ca = env.PAYMENTS_TEMPORAL_TLS_CA_FILE;
  const cert = env.PAYMENTS_TEMPORAL_TLS_CERT_FILE;
  const key = env.PAYMENTS_TEMPORAL_TLS_KEY_FILE;
  const serverName = env.PAYMENTS_TEMPORAL_TLS_SERVER_NAME;
  if (cert === undefined && key === undefined && ca === undefined && serverName === undefined) return null;
  if (cert === undefined || key === undefined) {
    throw new Error(
      'Temporal by TLS needs PAYMENTS_TEMPORAL_TLS_CERT_FILE and PAYMENTS_TEMPORAL_TLS_KEY_FILE: the server ' +
        'asks for our certificate, too.',
    );
  }
  return Object.freeze({
    ...(ca === undefined ? {} : { serverRootCACertificate: read('PAYMENTS_TEMPORAL_TLS_CA_FILE', ca) }),
    ...(serverName === undefined ? {} : { serverNameOverride: serverName }),
    clientCertPair: {
      crt: read('PAYMENTS_TEMPORAL_TLS_CERT_FILE', cert),
      key: read('PAYMENTS_TEMPORAL_TLS_KEY_FILE', key),
    },
  });
}

function read(name: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new Error(`The file that ${name} names cannot be read.`);
  }
}
