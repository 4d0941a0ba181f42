import { createHmac, randomBytes } from 'node:crypto';
import { Agent, request } from 'undici';
import type { KeysFile } from '../../src/config/config.js';
import type { PaymentState } from '../../src/domain/payment-state.js';
import type { DestinationCipher } from '../../src/encryption/destination-cipher.js';
import { metricsText } from '../../src/metrics/metrics.js';
import { PaymentReturns } from '../../src/payments/payment-returns.service.js';
import { ProviderNews } from '../../src/payments/provider-news.service.js';
import type {
  LookupAnswer,
  LookupRefs,
  PaymentProvider,
  ProviderResult,
} from '../../src/providers/payment-provider.js';
import { registryOf } from '../../src/providers/provider-registry.js';
import { SimulatedProvider } from '../../src/providers/simulated/simulated.adapter.js';
import type { SimulatedProfile } from '../../src/providers/simulated/simulated.descriptor.js';
import { ProcessEvent } from '../../src/webhooks/incoming/process-event.service.js';
import { WebhookInbox } from '../../src/webhooks/incoming/webhook-inbox.js';
import { databaseCipher } from './ciphers.js';
import { startTestApi, testKeys, type TestApi } from './api.js';
import { seedLane, seedTenant } from './builders.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { findBreaches } from './invariants.js';
import { paymentIn } from './payment-states.js';
import { resultOf } from './results.js';
import { TappedDatabase } from './tapped-database.js';
import { until } from './until.js';

/** As `openGeneration` of the tests writes it. */
const ACCOUNT = 'test';
export const AMOUNT = 1_999n;

type PayoutStatus = 'pending' | 'succeeded' | 'failed';

/** The adapter's own reading of events, and lookups that answer what the test's ledger says. */
export class ToldProvider extends SimulatedProvider {
  /** By payment id; absent: the provider has nothing. */
  readonly ledger = new Map<string, LookupAnswer | (() => LookupAnswer | Promise<LookupAnswer>)>();
  readonly asked: LookupRefs[] = [];

  constructor(profile: SimulatedProfile) {
    super({
      baseUrl: 'http://127.0.0.1:9',
      apiKey: `sk_test_${profile}`,
      account: ACCOUNT,
      profile,
      descriptor: { webhooks: 'standard_webhooks' },
    });
  }

  override async lookup(refs: LookupRefs): Promise<LookupAnswer> {
    this.asked.push(refs);
    const entry = this.ledger.get(refs.paymentId);
    if (entry === undefined) return { kind: 'absent', by: ['reference'] };
    return typeof entry === 'function' ? entry() : entry;
  }

  /** From now on a lookup finds the payment's object like this. */
  holds(paymentId: string, status: PayoutStatus, members: Partial<ProviderResult> = {}): void {
    this.ledger.set(paymentId, found(paymentId, status, members));
  }
}

/** What a lookup says of an object with this status that equals the instruction. */
export function found(
  paymentId: string,
  status: PayoutStatus,
  members: Partial<ProviderResult> = {},
): LookupAnswer {
  const observed = { amountMinor: AMOUNT, currency: 'EUR', destination: 'acct_test' };
  const code = status === 'failed' ? 'destination_closed' : status;
  const providerRef = payoutId(paymentId);
  const more = { status, observed, code, providerRef, httpStatus: 200, ...members };
  return { kind: 'found', result: resultOf(status === 'failed' ? 'rejected' : 'accepted', more) };
}

/** The provider's object of a payment. */
export function payoutId(paymentId: string): string {
  return `po_${paymentId.slice(4)}`;
}

export interface EventSeed {
  readonly id?: string;
  readonly type?: string;
  readonly status?: string;
  readonly generation?: number;
  readonly payout?: Readonly<Record<string, unknown>>;
  readonly key?: string | null;
  readonly returned?: { readonly id: string; readonly amount: number; readonly currency?: string };
  readonly more?: Readonly<Record<string, unknown>>;
}

/** The body of one event about a payment, as the simulated provider sends it. */
export function eventBody(paymentId: string, seed: EventSeed = {}): string {
  const status = seed.status ?? 'succeeded';
  const payout = {
    id: payoutId(paymentId),
    object: 'payout',
    amount: Number(AMOUNT),
    currency: 'EUR',
    destination: 'acct_test',
    reference: `${paymentId}/${seed.generation ?? 1}`,
    status,
    failure_code: status === 'failed' ? 'destination_closed' : null,
    livemode: false,
    returned: seed.returned ? { id: seed.returned.id, amount: seed.returned.amount, code: 'account_closed' } : null,
    ...seed.payout,
  }; // prettier-ignore
  return JSON.stringify({
    id: seed.id ?? newEventId(),
    object: 'event',
    type: seed.type ?? (seed.returned ? 'payout.returned' : `payout.${status}`),
    created: Math.floor(Date.now() / 1_000),
    livemode: false,
    request: { idempotency_key: seed.key ?? null },
    data: {
      object: payout,
      ...(seed.returned && { return: { currency: 'EUR', code: 'account_closed', ...seed.returned } }),
    },
    ...seed.more,
  });
}

export function newEventId(): string {
  return `evt_${randomBytes(12).toString('hex')}`;
}

export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Headers of Standard Webhooks over this body. */
export function signed(
  body: string,
  secret: string,
  atMs = Date.now(),
  id = 'msg_test',
): Record<string, string> {
  const seconds = String(Math.floor(atMs / 1_000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
}

export interface InboxRow {
  readonly payment_id: string | null;
  readonly result: string | null;
  readonly tries: number;
  readonly processed: boolean;
}

/** The API, a database, adapters whose lookups a test decides, and as many inboxes as it wants. */
export class WebhookRig {
  readonly secrets = { new: newSecret(), old: newSecret() };
  private readonly agent = new Agent({ connections: 32 });
  private readonly inboxes: WebhookInbox[] = [];
  private readonly databases: TappedDatabase[] = [];
  readonly faults: string[] = [];

  private constructor(
    readonly db: TestDatabase,
    readonly keys: KeysFile,
    readonly cipher: DestinationCipher,
    readonly tenant: string,
    readonly lanes: Readonly<Record<string, string>>,
    /** Idempotent, with lookup. */
    readonly a: ToldProvider,
    /** Idempotent only: nobody can be asked. */
    readonly b: ToldProvider,
  ) {}

  api!: TestApi;

  static async start(): Promise<WebhookRig> {
    const db = await createTestDatabase();
    const keys = testKeys();
    const tenant = await seedTenant(db.database);
    const [a, b] = [new ToldProvider('A'), new ToldProvider('B')];
    const lanes = {
      [a.name]: await seedLane(db.database, { provider: a.name }),
      [b.name]: await seedLane(db.database, { provider: b.name }),
    };
    const rig = new WebhookRig(db, keys, databaseCipher(keys, db.database), tenant, lanes, a, b);
    const secrets = [rig.secrets.new, rig.secrets.old];
    rig.api = await startTestApi({
      database: db.connect('api', 12),
      keys,
      providers: registryOf([a, b]),
      env: {
        PAYMENTS_WEBHOOK_SECRETS: JSON.stringify({
          [`${a.name}/${ACCOUNT}`]: secrets,
          [`${b.name}/${ACCOUNT}`]: secrets,
        }),
      },
    });
    return rig;
  }

  /** A payment that lived up to this state, with the rows that belong to it. @returns its id. */
  payment(state: PaymentState, provider: PaymentProvider = this.a): Promise<string> {
    const { tenant, cipher } = this;
    const lane = this.lanes[provider.name] ?? 'none';
    return paymentIn(state, this.db.database, { tenant, lane, cipher, provider: provider.name });
  }

  /** Sends bytes with these headers. */
  async post(
    body: string,
    headers: Readonly<Record<string, string>>,
    provider: string = this.a.name,
  ): Promise<{ readonly status: number; readonly code: string | undefined; readonly text: string }> {
    const answer = await request(`${this.api.url}/v1/webhooks/${provider}`, {
      method: 'POST',
      dispatcher: this.agent,
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    const text = await answer.body.text();
    const code = text === '' ? undefined : (JSON.parse(text) as { readonly code?: string }).code;
    return { status: answer.statusCode, code, text };
  }

  /** Sends an event that is rightly signed. @throws Error when it is not accepted. */
  async tell(body: string, provider: string = this.a.name): Promise<void> {
    const { status, text } = await this.post(body, signed(body, this.secrets.new), provider);
    if (status !== 204) throw new Error(`the event of the test was answered ${status}: ${text}`);
  }

  /** One worker's inbox, with a way to Postgres of its own; stopped with the rig. */
  inbox(options: { readonly providers?: readonly PaymentProvider[] } = {}): {
    readonly inbox: WebhookInbox;
    readonly database: TappedDatabase;
    readonly processing: ProcessEvent;
  } {
    const database = new TappedDatabase({
      url: this.db.urlOf('payments_worker'),
      poolSize: 10,
      applicationName: 'inbox',
    });
    this.databases.push(database);
    const processing = new ProcessEvent({
      sql: database,
      news: new ProviderNews(database, 30_000),
      returns: new PaymentReturns(database, { nudge: () => undefined }),
      cipher: this.cipher,
    });
    const inbox = new WebhookInbox({
      sql: database,
      providers: options.providers ?? [this.a, this.b],
      process: (provider, event) => processing.process(provider, event),
      fault: (operation, error) => void this.faults.push(`${operation}: ${String(error)}`),
      pollMs: 10,
    });
    this.inboxes.push(inbox);
    return { inbox, database, processing };
  }

  /** Waits until the events of this payment, or all, are processed. */
  async untilProcessed(eventIds?: readonly string[]): Promise<void> {
    await until(
      'every event is processed',
      async () => {
        const [row] = await this.db.query<{ open: number }>(
          `SELECT count(*)::integer AS open FROM webhook_inbox
            WHERE processed_at IS NULL AND ($1::text[] IS NULL OR event_id = ANY ($1))`,
          [eventIds ?? null],
        );
        return row?.open ?? -1;
      },
      (open) => open === 0,
    );
  }

  /** Every open event may be tried now, whatever its wait. */
  async makeDue(): Promise<void> {
    await this.db.query(
      `UPDATE webhook_inbox SET next_try_at = clock_timestamp() WHERE processed_at IS NULL`,
    );
  }

  /** What workers hold is free for all, as when their time is over. */
  async endHolds(): Promise<void> {
    await this.db.query(
      `UPDATE webhook_inbox SET taken_until = clock_timestamp() - interval '1 ms', next_try_at = clock_timestamp()
        WHERE processed_at IS NULL`,
    );
  }

  async row(eventId: string): Promise<InboxRow | undefined> {
    const [row] = await this.db.query<InboxRow>(
      `SELECT payment_id, result, tries, processed_at IS NOT NULL AS processed FROM webhook_inbox WHERE event_id = $1`,
      [eventId],
    );
    return row;
  }

  /** Waits until a try of the event has come to this. */
  untilResult(eventId: string, result: string): Promise<InboxRow | undefined> {
    return until(`${eventId} comes to ${result}`, () => this.row(eventId), (row) => row?.result === result); // prettier-ignore
  }

  async state(paymentId: string): Promise<string | undefined> {
    const [row] = await this.db.query<{ state: string }>(`SELECT state FROM payment WHERE id = $1`, [
      paymentId,
    ]);
    return row?.state;
  }

  /** The rules that moved a payment in this file, oldest first; the steps that built it are left out. */
  async rules(paymentId: string): Promise<readonly string[]> {
    const rows = await this.db.query<{ rule: string }>(
      `SELECT detail::json ->> 'rule' AS rule FROM payment_transition
        WHERE payment_id = $1 AND actor <> 'test' AND from_state IS NOT NULL ORDER BY seq`,
      [paymentId],
    );
    return rows.map((row) => row.rule);
  }

  /** Evidence of a payment as `source:kind:status`, oldest first. */
  async evidence(paymentId: string): Promise<readonly string[]> {
    const rows = await this.db.query<{ line: string }>(
      `SELECT concat_ws(':', source, kind, status) AS line FROM evidence WHERE payment_id = $1 ORDER BY id`,
      [paymentId],
    );
    return rows.map((row) => row.line);
  }

  async openCases(paymentId: string): Promise<readonly string[]> {
    const rows = await this.db.query<{ reason: string }>(
      `SELECT reason FROM review_case WHERE payment_id = $1 AND closed_at IS NULL`,
      [paymentId],
    );
    return rows.map((row) => row.reason);
  }

  async wakes(paymentId: string): Promise<number> {
    const [row] = await this.db.query<{ n: number }>(
      `SELECT count(*)::integer AS n FROM outbox WHERE payment_id = $1 AND kind = 'wake'`,
      [paymentId],
    );
    return row?.n ?? 0;
  }

  /** What the judge of the tests finds wrong; nothing publishes here, so outbox rows may be old. */
  breaches(): ReturnType<typeof findBreaches> {
    return findBreaches((text) => this.db.query(text), { except: [14] });
  }

  async stop(): Promise<void> {
    for (const inbox of this.inboxes) await inbox.stop();
    await this.agent.close();
    await this.api.close();
    for (const database of this.databases) await database.close();
    await this.db.drop();
  }
}

/** The value of a counter of this process, 0 when it was never counted. */
export async function counted(series: string): Promise<number> {
  const line = (await metricsText()).split('\n').find((each) => each.startsWith(`payments_${series} `));
  return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1));
}
