import { DomainError } from '../domain/domain-error.js';
import { instantFromPostgres } from '../domain/instant.js';
import type { TenantDatabase } from '../persistence/database.js';
import type { ListCursors } from './list-cursor.js';
import { findHistory, HISTORY_LIMIT, type HistoryRow } from './payment-history.store.js';
import { reading } from './payment-lifecycle.service.js';
import { listPayments } from './payment-list.store.js';
import { findPayment, type PaymentRow } from './payment.store.js';
import type { ListPaymentsQuery } from './schemas/list-payments.schema.js';

/**
 * Reads for the tenant of the caller. Postgres alone is asked. Every method throws
 * StorageUnavailable when it cannot answer; reading twice changes nothing.
 */
export class PaymentQueries {
  constructor(
    private readonly db: TenantDatabase,
    private readonly cursors: ListCursors,
  ) {}

  /** @throws DomainError `not_found`, also for a payment of another tenant. */
  async get(tenantId: string, paymentId: string): Promise<PaymentRow> {
    const row = await reading(() => findPayment(this.db.ofTenant(tenantId), tenantId, paymentId));
    if (!row) throw new DomainError('not_found');
    return row;
  }

  /**
   * Everything that happened, oldest first, up to 2,000 entries; `hasMore` when there are more.
   * @throws DomainError `not_found`.
   */
  async history(
    tenantId: string,
    paymentId: string,
  ): Promise<{ readonly entries: readonly HistoryRow[]; readonly hasMore: boolean }> {
    const rows = await reading(() => findHistory(this.db.ofTenant(tenantId), tenantId, paymentId));
    if (rows.length === 0) throw new DomainError('not_found');
    return { entries: rows.slice(0, HISTORY_LIMIT), hasMore: rows.length > HISTORY_LIMIT };
  }

  /**
   * One page, newest first, and the cursor of the next one (null on the last).
   * @throws DomainError `cursor_invalid` for a cursor that is not ours for this tenant and filter.
   */
  async list(
    tenantId: string,
    query: ListPaymentsQuery,
  ): Promise<{ readonly rows: readonly PaymentRow[]; readonly nextCursor: string | null }> {
    const { filter, limit } = query;
    const after = query.cursor === null ? null : this.cursors.read(query.cursor, tenantId, filter);
    if (query.cursor !== null && after === null) throw new DomainError('cursor_invalid');
    // One row more than asked tells whether there is a next page.
    const found = await reading(() =>
      listPayments(this.db.ofTenant(tenantId), { tenantId, filter, after, limit: limit + 1 }),
    );
    const rows = found.slice(0, limit);
    const last = rows.at(-1);
    if (found.length <= limit || !last) return { rows, nextCursor: null };
    const position = { createdAt: instantFromPostgres(last.created_at), id: last.id };
    return { rows, nextCursor: this.cursors.write(position, tenantId, filter) };
  }
}
