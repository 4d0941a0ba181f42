import { recordAudit, type AuditAction } from '../../audit/audit-log.js';
import { DomainError } from '../../domain/domain-error.js';
import { formatInstant, instantFromPostgres, instantToPostgres } from '../../domain/instant.js';
import type { DestinationCipher } from '../../encryption/destination-cipher.js';
import { reading } from '../../payments/payment-lifecycle.service.js';
import type { Sql, TenantDatabase } from '../../persistence/database.js';
import { newUuid } from '../../platform/ids.js';
import { readCursor, writeCursor } from './delivery-cursor.js';
import { listDeliveries, resendDelivery, type DeliveryRow } from './delivery-log.store.js';
import { judgeUrl, type GuardPolicy } from './endpoint-guard.js';
import { sealSecret } from './endpoint-secret.js';
import { eventId, readEventId } from './event.js';
import { newSecret } from './event-signature.js';
import type {
  ListDeliveriesQuery,
  ReplayEventsCommand,
  WebhookDeliveryListView,
  WebhookDeliveryView,
} from './schemas/webhook-delivery.schema.js';
import {
  previousSecretMs,
  type CreateWebhookEndpointCommand,
  type RotateSecretCommand,
  type WebhookEndpointView,
  type WebhookEndpointWithSecretView,
} from './schemas/webhook-endpoint.schema.js';
import {
  askReplay,
  deleteEndpoint,
  findEndpoint,
  insertEndpoint,
  listEndpoints,
  rotateSecret,
  setEndpointStatus,
  type EndpointRow,
  type EndpointStatus,
} from './webhook-endpoint.store.js';

/** Whose endpoint, and who asks. */
export interface EndpointTarget {
  readonly tenantId: string;
  readonly actor: string;
  readonly id: string;
}

export interface WebhookEndpointsParts {
  readonly database: TenantDatabase;
  readonly cipher: Pick<DestinationCipher, 'encrypt'>;
  readonly policy: GuardPolicy;
}

/**
 * What clients do with their endpoints. Every change is written into the audit log in its own
 * transaction. Every method throws DomainError `not_found` for an endpoint that the tenant lacks, also
 * for another tenant's; StorageUnavailable; and changes OutcomeUnknown, when the change may be stored.
 */
export class WebhookEndpoints {
  constructor(private readonly parts: WebhookEndpointsParts) {}

  /**
   * Stores an endpoint, active at once, and shows its secret this once.
   * @throws DomainError `endpoint_url_not_allowed`, `too_many_endpoints`. Twice: two endpoints.
   */
  async create(
    by: Omit<EndpointTarget, 'id'>,
    command: CreateWebhookEndpointCommand,
  ): Promise<WebhookEndpointWithSecretView> {
    const verdict = judgeUrl(command.url, this.parts.policy);
    if (verdict.kind === 'refused') {
      throw new DomainError('endpoint_url_not_allowed', { extra: { reason: verdict.reason } });
    }
    const id = `whe_${newUuid().replaceAll('-', '')}`;
    const secret = newSecret();
    const sealed = await this.seal(by.tenantId, id, secret);
    const row = await this.changing({ ...by, id }, 'webhook_endpoint_added', async (tx) => {
      const made = await insertEndpoint(tx, {
        id,
        tenantId: by.tenantId,
        url: verdict.url.href,
        description: command.description ?? null,
        eventTypes: command.event_types ?? null,
        secret: sealed,
        actor: by.actor,
      });
      if (made === null) throw new DomainError('too_many_endpoints');
      return made;
    });
    return { ...endpointView(row), secret };
  }

  async list(tenantId: string): Promise<readonly WebhookEndpointView[]> {
    const rows = await reading(() => listEndpoints(this.sqlOf(tenantId), tenantId));
    return rows.map(endpointView);
  }

  async get(tenantId: string, id: string): Promise<WebhookEndpointView> {
    return endpointView(found(await reading(() => findEndpoint(this.sqlOf(tenantId), tenantId, id))));
  }

  /** Enabled, the endpoint gets what waited for it; what happened while it was disabled needs a replay. */
  async setStatus(target: EndpointTarget, status: EndpointStatus): Promise<WebhookEndpointView> {
    const { tenantId, actor, id } = target;
    const row = await this.parts.database.ofTenant(tenantId).transaction(async (tx) => {
      const { row: now, changed } = found(await setEndpointStatus(tx, tenantId, id, status));
      const code = status === 'active' ? 'enabled' : 'disabled';
      if (changed)
        await recordAudit(tx, { tenantId, actor, action: 'webhook_endpoint_changed', target: id, code });
      return now;
    });
    return endpointView(row);
  }

  /** Nothing is sent there any more; its secrets and what waited for it are gone. Twice: `not_found`. */
  async remove(target: EndpointTarget): Promise<void> {
    await this.changing(target, 'webhook_endpoint_removed', async (tx) => {
      if (!(await deleteEndpoint(tx, target.tenantId, target.id))) throw new DomainError('not_found');
    });
  }

  /** A new secret, shown this once; see `rotateSecret` for the one before. Twice: another one. */
  async rotate(target: EndpointTarget, command: RotateSecretCommand): Promise<WebhookEndpointWithSecretView> {
    const { tenantId, id } = target;
    await this.get(tenantId, id);
    const secret = newSecret();
    const sealed = await this.seal(tenantId, id, secret);
    const row = await this.changing(target, 'webhook_secret_rotated', async (tx) =>
      found(
        await rotateSecret(tx, { tenantId, id, secret: sealed, previousForMs: previousSecretMs(command) }),
      ),
    );
    return { ...endpointView(row), secret };
  }

  /** Queues what happened since then and did not arrive. @throws DomainError `replay_too_old`. */
  async replay(target: EndpointTarget, { since }: ReplayEventsCommand): Promise<WebhookEndpointView> {
    const { tenantId, id } = target;
    await this.get(tenantId, id);
    const row = await this.changing(
      target,
      'webhook_endpoint_changed',
      async (tx) => {
        const asked = await askReplay(tx, tenantId, id, instantToPostgres(since));
        if (asked === null) throw new DomainError('replay_too_old');
        return asked;
      },
      'replayed',
    );
    return endpointView(row);
  }

  /** Queues one event again, whether it arrived or not. @throws DomainError `not_found` also for the event. */
  async resend(target: EndpointTarget, id: string): Promise<void> {
    const event = readEventId(id);
    if (event === null) throw new DomainError('not_found');
    const of = { tenantId: target.tenantId, id: target.id, ...event };
    if (!(await resendDelivery(this.sqlOf(target.tenantId), of))) throw new DomainError('not_found');
  }

  /** One page of the log, newest first. @throws DomainError `cursor_invalid`. */
  async deliveries(
    tenantId: string,
    endpointId: string,
    query: ListDeliveriesQuery,
  ): Promise<WebhookDeliveryListView> {
    const after = query.cursor === null ? null : readCursor(query.cursor);
    if (query.cursor !== null && after === null) throw new DomainError('cursor_invalid');
    await this.get(tenantId, endpointId);
    const { result, limit } = query;
    const rows = await reading(() =>
      listDeliveries(this.sqlOf(tenantId), { tenantId, endpointId, after, result, limit: limit + 1 }),
    );
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    return {
      data: shown.map(deliveryView),
      next_cursor:
        rows.length > limit && last
          ? writeCursor({ createdAt: last.created_at, paymentId: last.payment_id, version: last.version })
          : null,
    };
  }

  private sqlOf(tenantId: string): Sql {
    return this.parts.database.ofTenant(tenantId);
  }

  private seal(tenant: string, endpointId: string, secret: string) {
    return sealSecret(this.parts.cipher, { tenant, endpointId }, secret);
  }

  private async changing<T>(
    { tenantId, actor, id }: EndpointTarget,
    action: AuditAction,
    work: (tx: Sql) => Promise<T>,
    code: string | null = null,
  ): Promise<T> {
    return this.parts.database.ofTenant(tenantId).transaction(async (tx) => {
      const done = await work(tx);
      await recordAudit(tx, { tenantId, actor, action, target: id, code });
      return done;
    });
  }
}

function found<T>(row: T | null): T {
  if (row === null) throw new DomainError('not_found');
  return row;
}

const shown = (text: string): string => formatInstant(instantFromPostgres(text));
const shownOrNull = (text: string | null): string | null => (text === null ? null : shown(text));

function endpointView(row: EndpointRow): WebhookEndpointView {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    event_types: row.event_types === null ? null : [...row.event_types],
    status: row.status,
    status_reason: row.status_reason,
    status_changed_at: shown(row.status_changed_at),
    failing_since: shownOrNull(row.failing_since),
    previous_secret_until: shownOrNull(row.previous_secret_until),
    replaying_from: shownOrNull(row.replay_from),
    created_at: shown(row.created_at),
  };
}

function deliveryView(row: DeliveryRow): WebhookDeliveryView {
  return {
    event_id: eventId({ paymentId: row.payment_id, version: row.version }),
    type: `payment.${row.state}`,
    payment_id: row.payment_id,
    version: row.version,
    occurred_at: shown(row.occurred_at),
    queued_at: shown(row.created_at),
    result: row.result ?? 'pending',
    tries: row.tries,
    last_try_at: shownOrNull(row.last_try_at),
    last_code: row.last_code,
    last_http_status: row.last_http_status,
    last_duration_ms: row.last_ms,
    next_try_at: shownOrNull(row.next_try_at),
  };
}
