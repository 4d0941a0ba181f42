import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestAuthority } from './certificates.js';

export interface ProductionSettings {
  /** What production asks for beyond development: certificates for Temporal. */
  readonly env: Readonly<Record<string, string>>;
  /** Removes the files. */
  remove(): void;
}

/** Settings with which production mode starts, on files of their own. */
export async function productionSettings(): Promise<ProductionSettings> {
  const folder = mkdtempSync(join(tmpdir(), 'payments-production-'));
  const authority = await createTestAuthority();
  const client = await authority.issue('payments');
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  return {
    env: {
      PAYMENTS_MODE: 'production',
      PAYMENTS_PROVIDER: 'stripe',
      PAYMENTS_TEMPORAL_TLS_CA_FILE: write('temporal-ca.crt', authority.ca),
      PAYMENTS_TEMPORAL_TLS_CERT_FILE: write('temporal.crt', client.cert),
      PAYMENTS_TEMPORAL_TLS_KEY_FILE: write('temporal.key', client.key),
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
