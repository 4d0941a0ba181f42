import { formatInstant, instantFromPostgres, MICROS_PER_MILLISECOND } from '../domain/instant.js';
import type { DestinationCipher } from '../encryption/destination-cipher.js';
import { DataKeyDeleted } from '../encryption/unreadable.js';
import { isFinal } from '../domain/payment-state.js';
import type { HistoryRow } from './payment-history.store.js';
import type { PaymentRow } from './payment.store.js';
import type { HistoryEntryView, PaymentView } from './schemas/payment.schema.js';

/** Shows payments to their tenant. */
export class PaymentViews {
  constructor(private readonly cipher: Pick<DestinationCipher, 'openDestination'>) {}

  /**
   * The destination in clear: the tenant gave it, and payments:read is the scope that may see it
   * again. Null when the tenant's data keys were deleted: nobody can read it, and the rest still stands.
   * @throws NotAuthentic, UnknownKey when the stored destination does not open for another reason.
   */
  async of(row: PaymentRow): Promise<PaymentView> {
    return paymentView(row, await this.destinationOf(row));
  }

  private async destinationOf(row: PaymentRow): Promise<string | null> {
    try {
      return await this.cipher.openDestination(row);
    } catch (error) {
      if (error instanceof DataKeyDeleted) return null;
      throw error;
    }
  }
}

function paymentView(row: PaymentRow, destination: string | null): PaymentView {
  return {
    id: row.id,
    state: row.state,
    version: row.version,
    amount: Number(row.amount),
    currency: row.currency,
    destination,
    provider: row.provider,
    reference: row.reference,
    description: row.description,
    metadata: row.metadata ?? {},
    execute_at: shown(row.execute_at),
    not_after: shown(row.not_after),
    submission_started_at: shownOrNull(row.submission_started_at),
    first_call_at: shownOrNull(row.first_call_at),
    lateness_ms: latenessMs(row),
    provider_ref: row.provider_ref,
    next_action_at: isFinal(row.state) ? null : shownOrNull(row.next_action_at),
    created_at: shown(row.created_at),
    updated_at: shown(row.updated_at),
  };
}

/** Rounded down and never cut at zero: a negative one would be a broken promise, and must be seen. */
function latenessMs(row: PaymentRow): number | null {
  if (row.first_call_at === null) return null;
  const micros = instantFromPostgres(row.first_call_at) - instantFromPostgres(row.execute_at);
  const whole = micros / MICROS_PER_MILLISECOND;
  return Number(micros < 0n && micros % MICROS_PER_MILLISECOND !== 0n ? whole - 1n : whole);
}

const TIMES_INSIDE = ['call_started_at', 'closed_at'] as const;

/** One row of the history in the API's form. The store names the members as the API does. */
export function historyEntryView(row: HistoryRow): HistoryEntryView {
  const body: Record<string, unknown> = { ...row.body };
  for (const name of TIMES_INSIDE) if (name in body) body[name] = shownOrNull(body[name] as string | null);
  return { kind: row.kind, at: shown(row.at), ...body } as HistoryEntryView;
}

/** Postgres text of a timestamptz in the API's form. */
export function shown(postgresText: string): string {
  return formatInstant(instantFromPostgres(postgresText));
}

export function shownOrNull(postgresText: string | null): string | null {
  return postgresText === null ? null : shown(postgresText);
}
