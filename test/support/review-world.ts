import { startTestApi, type ApiAnswer, type Client, type TestApi } from './api.js';
import { seedLane, seedTenant } from './builders.js';
import { databaseCipher } from './ciphers.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { createTestIssuer, type TestIssuer, type TokenSeed } from './people.js';
import { addEvidence, paymentIn } from './payment-states.js';
import { revokePerson, type PersonRevocation } from '../../src/auth/revoked-person.store.js';
import type { PaymentState } from '../../src/domain/payment-state.js';
import type { Database } from '../../src/persistence/database.js';

/** An API with an issuer of its own, a tenant, and people who log in. */
export interface ReviewWorld {
  readonly db: TestDatabase;
  readonly issuer: TestIssuer;
  readonly api: TestApi;
  readonly tenant: string;
  /** As payments_admin. */
  readonly admin: Database;
  /** A person with a second factor; each call is another token of the same subject. */
  person(subject: string, seed?: TokenSeed): Promise<Client>;
  /** A payment of the tenant, or of another one, that lived up to this state by legal moves. */
  make(state: PaymentState, tenant?: string): Promise<string>;
  /** In review, with a lookup as evidence that says the instructed money moved. @returns both ids. */
  makeFound(): Promise<{ readonly id: string; readonly evidence: string }>;
  head(id: string): Promise<{ readonly state: PaymentState; readonly version: number }>;
  close(): Promise<void>;
}

export async function createReviewWorld(): Promise<ReviewWorld> {
  const db = await createTestDatabase();
  const issuer = await createTestIssuer();
  const api = await startTestApi({ database: db.database, env: issuer.env });
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  const cipher = databaseCipher(api.keys, db.database);
  const make = (state: PaymentState, of = tenant) =>
    paymentIn(state, db.database, { tenant: of, lane, cipher });
  return {
    db,
    issuer,
    api,
    tenant,
    admin: db.as('payments_admin'),
    make,
    person: async (subject, seed = {}) =>
      api.as(await issuer.token({ tenant, subject, ...seed }), seed.tenant ?? tenant),
    makeFound: async () => {
      const id = await make('needs_review');
      const found = { source: 'lookup', kind: 'found', status: 'succeeded', amount: 1_999n, currency: 'EUR' } as const; // prettier-ignore
      await addEvidence(db.database, id, found);
      const [row] = await db.query<{ id: string }>(
        `SELECT max(id)::text AS id FROM evidence WHERE payment_id = $1`,
        [id],
      );
      return { id, evidence: row?.id ?? '' };
    },
    head: async (id) => {
      const [row] = await db.query<{ state: PaymentState; version: number }>(
        `SELECT state, version FROM payment WHERE id = $1`,
        [id],
      );
      if (!row) throw new Error(`no payment ${id}`);
      return row;
    },
    close: async () => {
      await api.close();
      issuer.close();
      await db.drop();
    },
  };
}

export interface ProposalSeed {
  readonly outcome?: string;
  readonly reason?: string;
  readonly evidence?: readonly string[];
  readonly proof?: { readonly kind: string; readonly statement: string };
  /** Null: no If-Match. */
  readonly version?: number | null;
}

/** What the provider says itself supports every outcome. */
export const STATEMENT = { kind: 'provider_statement', statement: 'Mail of the provider of 24 December.' };

/** POST …/resolutions, for the version as it is unless the seed names one. */
export async function propose(
  world: ReviewWorld,
  as: Client,
  id: string,
  seed: ProposalSeed = {},
): Promise<ApiAnswer> {
  const version = seed.version === undefined ? (await world.head(id)).version : seed.version;
  return as.post(`/v1/payments/${id}/resolutions`, {
    headers: version === null ? {} : { 'if-match': `"v${version}"` },
    body: {
      outcome: seed.outcome ?? 'succeeded',
      reason_code: seed.reason ?? 'provider_confirmed',
      ...(seed.evidence ? { evidence: seed.evidence } : {}),
      ...(seed.proof ? { proof: seed.proof } : {}),
    },
  });
}

/** POST …/approve. */
export function approve(as: Client, id: string, resolution: string, ifMatch?: string): Promise<ApiAnswer> {
  return as.post(`/v1/payments/${id}/resolutions/${resolution}/approve`, {
    headers: ifMatch === undefined ? {} : { 'if-match': ifMatch },
  });
}

/** Takes a person's access away, as the command line does. */
export function revoke({ admin }: ReviewWorld, subject: string): Promise<PersonRevocation> {
  return admin.transaction((tx) =>
    revokePerson(tx, { subject, by: 'operator:test', reason: 'left_company' }),
  );
}
