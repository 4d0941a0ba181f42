import { expect } from 'vitest';
import type { PaymentState } from '../../src/domain/payment-state.js';
import type { GuardPolicy } from '../../src/webhooks/outgoing/endpoint-guard.js';
import { EventSender } from '../../src/webhooks/outgoing/event-sender.js';
import { WebhookDeliverer, type DelivererParts } from '../../src/webhooks/outgoing/webhook-deliverer.js';
import {
  WebhookEndpoints,
  type EndpointTarget,
} from '../../src/webhooks/outgoing/webhook-endpoints.service.js';
import type { WebhookEndpointWithSecretView } from '../../src/webhooks/outgoing/schemas/webhook-endpoint.schema.js';
import { seedLane, seedTenant, testCipher } from './builders.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { paymentIn } from './payment-states.js';
import { TappedDatabase } from './tapped-database.js';
import { until } from './until.js';
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.js';

/** A delivery as the tests look at it. */
export interface DeliveryFacts {
  readonly version: number;
  readonly tries: number;
  readonly takes: number;
  readonly last_code: string | null;
  readonly last_http_status: number | null;
  readonly result: string | null;
  /** Between the last try and the next, as planned. */
  readonly wait_s: number;
}

/** A database, a receiver with TLS, clients' endpoints, and as many deliverers as a test wants. */
export class ClientWebhookRig {
  readonly faults: string[] = [];
  readonly disabled: string[] = [];
  readonly endpoints: WebhookEndpoints;
  private readonly policy: GuardPolicy;
  private readonly deliverers: WebhookDeliverer[] = [];
  private readonly databases: TappedDatabase[] = [];

  private constructor(
    readonly db: TestDatabase,
    readonly receiver: WebhookReceiver,
    private readonly lane: string,
  ) {
    this.policy = { ports: [receiver.port], allowLoopback: true };
    this.endpoints = new WebhookEndpoints({
      database: db.as('payments_api'),
      cipher: testCipher,
      policy: this.policy,
    });
  }

  static async start(): Promise<ClientWebhookRig> {
    const db = await createTestDatabase();
    return new ClientWebhookRig(db, await startWebhookReceiver(), await seedLane(db.database));
  }

  tenant(): Promise<string> {
    return seedTenant(this.db.database);
  }

  url(path: string, host = 'hooks.example.com'): string {
    return `https://${host}:${this.receiver.port}${path}`;
  }

  /** An endpoint of the tenant at this path of the receiver. */
  endpoint(
    tenantId: string,
    path: string,
    more: { readonly event_types?: string[]; readonly host?: string } = {},
  ): Promise<WebhookEndpointWithSecretView> {
    const { host, ...command } = more;
    return this.endpoints.create(
      { tenantId, actor: 'api_key:test' },
      { url: this.url(path, host), ...command },
    );
  }

  target(tenantId: string, id: string): EndpointTarget {
    return { tenantId, actor: 'api_key:test', id };
  }

  /** A payment of the tenant that lived up to this state. @returns its id. */
  payment(tenant: string, state: PaymentState): Promise<string> {
    return paymentIn(state, this.db.database, { tenant, lane: this.lane });
  }

  /** One worker's deliverer, with a way to Postgres of its own; stopped with the rig. */
  deliverer(
    options: Partial<Pick<DelivererParts, 'dead' | 'perEndpoint' | 'random' | 'cipher'>> & {
      readonly wholeMs?: number;
    } = {},
  ): { readonly deliverer: WebhookDeliverer; readonly database: TappedDatabase } {
    const { wholeMs, ...parts } = options;
    const database = new TappedDatabase({
      url: this.db.urlOf('payments_worker'),
      poolSize: 10,
      applicationName: 'deliverer',
    });
    this.databases.push(database);
    const deliverer = new WebhookDeliverer({
      sql: database,
      cipher: testCipher,
      sender: new EventSender({
        policy: this.policy,
        resolve: async () => ['127.0.0.1'],
        tls: { ca: this.receiver.ca },
        ...(wholeMs === undefined ? {} : { wholeMs }),
      }),
      fault: (operation, error) => void this.faults.push(`${operation}: ${String(error)}`),
      endpointDisabled: (reason) => void this.disabled.push(reason),
      pollMs: 20,
      ...parts,
    });
    this.deliverers.push(deliverer);
    return { deliverer, database };
  }

  async rows(endpointId: string, paymentId: string | null = null): Promise<readonly DeliveryFacts[]> {
    return this.db.query<DeliveryFacts>(
      `SELECT version, tries, takes, last_code, last_http_status, result,
              extract(epoch FROM next_try_at - last_try_at)::double precision AS wait_s
         FROM webhook_delivery WHERE endpoint_id = $1 AND ($2::text IS NULL OR payment_id = $2)
        ORDER BY payment_id, version`,
      [endpointId, paymentId],
    );
  }

  /** Waits until this endpoint has nothing open. */
  async untilDone(endpointId: string): Promise<readonly DeliveryFacts[]> {
    return until('every delivery is done', () => this.rows(endpointId), (rows) => rows.every((row) => row.result !== null)); // prettier-ignore
  }

  /** Waits until the try of a version has been recorded with this code. */
  async untilCode(endpointId: string, code: string, tries = 1): Promise<DeliveryFacts> {
    const rows = await until(
      `a delivery comes to ${code}`,
      () => this.rows(endpointId),
      (found) => found.some((row) => row.last_code === code && row.tries >= tries),
    );
    const row = rows.find((each) => each.last_code === code);
    if (!row) throw new Error('it was there a moment ago');
    return row;
  }

  /** Every open delivery may be tried now, whatever its wait. */
  async makeDue(): Promise<void> {
    await this.db.query(`UPDATE webhook_delivery SET next_try_at = clock_timestamp() WHERE done_at IS NULL`);
  }

  /** What workers hold is free for all, as when their time is over. */
  async endHolds(): Promise<void> {
    await this.db.query(
      `UPDATE webhook_delivery SET taken_until = clock_timestamp() - interval '1 ms' WHERE done_at IS NULL`,
    );
  }

  async status(endpointId: string): Promise<{ readonly status: string; readonly reason: string | null }> {
    const [row] = await this.db.query<{ status: string; reason: string | null }>(
      `SELECT status, status_reason AS reason FROM webhook_endpoint WHERE id = $1`,
      [endpointId],
    );
    if (!row) throw new Error('there is no such endpoint');
    return row;
  }

  async stop(): Promise<void> {
    for (const deliverer of this.deliverers) await deliverer.stop();
    await this.receiver.close();
    for (const database of this.databases) await database.close();
    await this.db.drop();
    expect(this.faults).toEqual([]);
  }
}
