import { instantToPostgres, type Instant } from '../domain/instant.js';
import type { PaymentState } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';
import { PAYMENT_COLUMNS, type PaymentRow } from './payment.store.js';

/** What a list is narrowed to; an absent member narrows nothing. Ranges: from included, before not. */
export interface PaymentFilter {
  readonly state?: PaymentState;
  readonly currency?: string;
  readonly provider?: string;
  readonly reference?: string;
  readonly executeAtFrom?: Instant;
  readonly executeAtBefore?: Instant;
  readonly createdAtFrom?: Instant;
  readonly createdAtBefore?: Instant;
}

/** The last payment of the page before: the list goes on below it. */
export interface ListPosition {
  readonly createdAt: Instant;
  readonly id: string;
}

const list = (name: string, reference: string): Statement => ({
  name,
  // The bounds are never null, so that a plan made for any values can still use them on the index.
  text: `SELECT ${PAYMENT_COLUMNS} FROM payment p
 WHERE p.tenant_id = $1
   AND (p.created_at, p.id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
   AND p.created_at >= coalesce($4::timestamptz, '-infinity')
   AND p.created_at < coalesce($5::timestamptz, 'infinity')
   AND ($6::timestamptz IS NULL OR p.execute_at >= $6)
   AND ($7::timestamptz IS NULL OR p.execute_at < $7)
   AND ($8::text IS NULL OR p.state = $8)
   AND ($9::text IS NULL OR p.currency = $9)
   AND ($10::text IS NULL OR p.provider = $10)
   AND ${reference}
 ORDER BY p.created_at DESC, p.id DESC LIMIT $12`,
});
/** Walks payment_by_creation backwards. */
const LIST = list('payment-list', '$11::text IS NULL');
/** Walks payment_by_reference backwards. */
const LIST_BY_REFERENCE = list('payment-list-by-reference', 'p.reference = $11::text');

const at = (instant: Instant | undefined): string | null =>
  instant === undefined ? null : instantToPostgres(instant);

/**
 * One page of the tenant's payments, newest first. A payment's place never changes, so a walk by
 * position meets each payment that existed at its start once, whatever is added meanwhile.
 * @param limit number of rows at most.
 */
export async function listPayments(
  db: Sql,
  page: {
    readonly tenantId: string;
    readonly filter: PaymentFilter;
    readonly after: ListPosition | null;
    readonly limit: number;
  },
): Promise<readonly PaymentRow[]> {
  const { filter, after } = page;
  const statement = filter.reference === undefined ? LIST : LIST_BY_REFERENCE;
  const { rows } = await db.query<PaymentRow>(statement, [
    page.tenantId,
    at(after?.createdAt),
    after?.id ?? null,
    at(filter.createdAtFrom),
    at(filter.createdAtBefore),
    at(filter.executeAtFrom),
    at(filter.executeAtBefore),
    filter.state ?? null,
    filter.currency ?? null,
    filter.provider ?? null,
    filter.reference ?? null,
    page.limit,
  ]);
  return rows;
}
