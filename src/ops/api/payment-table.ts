import { parseCurrency } from '../../domain/currency.js';
import { formatMoney } from '../../domain/money.js';
import { factsTable } from '../table.js';

/** A payment as the API shows it; the members that a table shows. */
export interface Payment {
  readonly id: string;
  readonly state: string;
  readonly version: number;
  readonly amount: number;
  readonly currency: string;
  readonly destination: string | null;
  readonly provider: string;
  readonly reference: string | null;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly execute_at: string;
  readonly not_after: string;
  readonly submission_started_at: string | null;
  readonly first_call_at: string | null;
  readonly lateness_ms: number | null;
  readonly provider_ref: string | null;
  readonly next_action_at: string | null;
  readonly created_at: string;
}

/** `19.99 EUR`; the bare number of minor units for a currency that this release does not know. */
export function moneyText(payment: Pick<Payment, 'amount' | 'currency'>): string {
  const parsed = parseCurrency(payment.currency);
  return parsed.kind === 'currency'
    ? formatMoney({ amountMinor: BigInt(payment.amount), currency: parsed.currency })
    : `${payment.amount} minor units of ${payment.currency}`;
}

/** Everything a person asks about a payment; what is not known yet is left out. */
export function paymentTable(payment: Payment): string {
  const metadata = Object.entries(payment.metadata).map(([key, value]) => `${key}=${value}`);
  return factsTable([
    ['id', payment.id],
    ['state', payment.state],
    ['version', String(payment.version)],
    ['amount', moneyText(payment)],
    ['destination', payment.destination ?? '-'],
    ['provider', payment.provider],
    ['reference', payment.reference],
    ['description', payment.description],
    ['metadata', metadata.length > 0 ? metadata.join('\n') : null],
    ['execute at', payment.execute_at],
    ['not after', payment.not_after],
    ['submission started', payment.submission_started_at],
    ['first call', payment.first_call_at],
    ['lateness', payment.lateness_ms === null ? null : `${payment.lateness_ms} ms`],
    ['provider reference', payment.provider_ref],
    ['next action', payment.next_action_at],
    ['created', payment.created_at],
  ]);
}
