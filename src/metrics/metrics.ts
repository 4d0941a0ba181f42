import type { Cause, PaymentState } from '../domain/payment-state.js';
import type { Evidence } from '../domain/provider-outcome.js';
import { count, durations, level, registry } from './instruments.js';

/**
 * Every metric of the product, named once. Prefix `payments_`; times in seconds; labels are closed
 * sets, so neither an id nor a client's text can become a series. Safe to call from anywhere:
 * nothing here throws for a value of the right type, and nothing waits.
 */

/** The text of all metrics in the Prometheus format. */
export function metricsText(): Promise<string> {
  return registry.metrics();
}

// The API.

/** Good to 10 s, the handler's own limit. */
const HTTP_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10];

/** `route` is the route's pattern, never the path that was asked. */
export const httpRequestSeconds = durations<{ route: string; method: string; code: string }>(
  'http_request_seconds',
  'Time from the request to its answer, by route pattern, method and status.',
  HTTP_BUCKETS,
  ['route', 'method', 'code'],
);

export const idempotencyTotal = count<{ result: 'created' | 'replayed' | 'reused' | 'in_use' }>(
  'idempotency_total',
  'Creates by what their idempotency key met.',
  ['result'],
);

export const authFailuresTotal = count<{
  reason:
    | 'missing'
    | 'malformed'
    | 'wrong_mode'
    | 'unknown'
    | 'wrong_secret'
    | 'pepper_missing'
    | 'limited'
    | 'token_invalid'
    | 'token_expired'
    | 'unknown_tenant'
    | 'person_revoked'
    | 'scope';
}>('auth_failures_total', 'Requests refused for their credential or its scopes.', ['reason']);

export const rateLimitedTotal = count<{ limit: 'client' | 'tenant' | 'client-cancel' | 'tenant-cancel' }>(
  'rate_limited_total',
  'Requests refused with 429 by the limit that refused them.',
  ['limit'],
);

export const rateLimitAloneTotal = count(
  'rate_limit_alone_total',
  'Times Postgres could not be asked for tokens: the process went by its own count for a second.',
);

export const shedTotal = count<{
  cause: 'queue_full' | 'too_many' | 'event_loop' | 'waited_too_long';
  urgency: 'cancel' | 'read' | 'work';
}>('shed_total', 'Requests turned away with 503 overloaded before any work, by cause and urgency.', [
  'cause',
  'urgency',
]);

/** What a cancel was answered; a lost one is named by what it found. */
export type CancelResult =
  | 'cancelled'
  | 'already_cancelled'
  | 'expired'
  | 'submission_started'
  | 'payment_final'
  | 'version_mismatch'
  | 'recovery_hold'
  | 'not_found';
export const cancelTotal = count<{ result: CancelResult }>('cancel_total', 'Cancels by their answer.', [
  'result',
]);

// The life of a payment.

export const transitionsTotal = count<{ from: PaymentState | 'none'; to: PaymentState; cause: Cause }>(
  'transitions_total',
  'Transitions that this process recorded.',
  ['from', 'to', 'cause'],
);

export const gateLostTotal = count<{ cause: Cause }>(
  'gate_lost_total',
  'Moves that lost their race: the state, version or guard did not fit.',
  ['cause'],
);

export const latenessSeconds = durations(
  'lateness_seconds',
  'First call to the provider minus execute_at, on the database clock.',
  [0.1, 0.5, 1, 5, 15, 60, 300, 3600],
);

export const earlyRefusalsTotal = count(
  'early_refusals_total',
  'Payments that one clock called due and another did not: nothing was sent.',
);

export type OpenState = Extract<
  PaymentState,
  'scheduled' | 'held' | 'submitting' | 'submitted' | 'unknown' | 'needs_review'
>;
export const current = level<{ state: OpenState }>(
  'current',
  'Payments in each state that is not final, counted up to 100000.',
  ['state'],
);

export const dueOldestSeconds = level(
  'due_oldest_seconds',
  'Age of the oldest payment that is due, scheduled and in a lane that is open; 0: none.',
);

// The provider.

/** Up to 25 s, the deadline of a call. */
const PROVIDER_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30];

export type ProviderOperation = 'submit' | 'commit' | 'lookup' | 'cancel';
export const providerSeconds = durations<{
  provider: string;
  operation: ProviderOperation;
  evidence: Evidence | 'none';
}>('provider_seconds', 'Time of one call to the provider; lookups carry no evidence.', PROVIDER_BUCKETS, [
  'provider',
  'operation',
  'evidence',
]);

export const callsInFlight = level<{ provider: string }>(
  'calls_in_flight',
  'Calls to the provider that this process waits for.',
  ['provider'],
);

/**
 * open: takes what is due. throttled: waits because the provider asked for it. broken: its breaker lets
 * single probes through. credential_refused, paused: until a person resumes it.
 */
export type LaneState = 'open' | 'throttled' | 'broken' | 'credential_refused' | 'paused';
export const laneState = level<{ provider: string; state: LaneState }>(
  'lane_state',
  'Lanes of the provider in each state.',
  ['provider', 'state'],
);

export const laneBacklog = level<{ provider: string }>(
  'lane_backlog',
  'Payments that are due, scheduled and not started, in all lanes of the provider, counted up to 100000 a lane.',
  ['provider'],
);

export const laneExpectedEndSeconds = level<{ provider: string }>(
  'lane_expected_end_seconds',
  'Longest time until a lane of the provider has started its backlog at its rate, with what it waits; 0: none.',
  ['provider'],
);

export const unknownOldestSeconds = level(
  'unknown_oldest_seconds',
  'Time since the oldest payment that is unknown became so for the first time; 0: none.',
);

export const keyLifeLeftRatioMin = level(
  'key_life_left_ratio_min',
  'Smallest share of its key life that an unknown payment has left, 1 to 0; 1: none.',
);

export const contradictionsTotal = count<{ source: 'answer' | 'lookup' | 'webhook' | 'settlement' }>(
  'contradictions_total',
  'News of a provider that contradicts a final state or its own earlier news.',
  ['source'],
);

export const reviewOpen = level<{ reason: string }>('review_open', 'Open review cases by reason code.', [
  'reason',
]);

export const reviewOldestSeconds = level(
  'review_oldest_seconds',
  'Age of the oldest open review case; 0: none.',
);

// Events of providers.

export type WebhookReceipt =
  | 'stored'
  | 'duplicate'
  | 'unsigned'
  | 'forged'
  | 'too_old'
  | 'from_future'
  | 'unreadable'
  | 'too_large'
  | 'unknown_provider';
/** `provider` is a configured name, or `unknown`. */
export const webhookInTotal = count<{ provider: string; result: WebhookReceipt }>(
  'webhook_in_total',
  'Events of providers that were received, by what was done with them.',
  ['provider', 'result'],
);

export type WebhookOutcome =
  | 'moved'
  | 'agreed'
  | 'contradiction'
  | 'with_people'
  | 'ignored'
  | 'left_to_inquiry'
  | 'not_found'
  | 'unmatched'
  | 'undecided'
  | 'fault';
export const webhookProcessedTotal = count<{ provider: string; result: WebhookOutcome }>(
  'webhook_processed_total',
  'Tries to process a stored event, by what each came to; unmatched, undecided and fault are tried again.',
  ['provider', 'result'],
);

export const webhookParked = level(
  'webhook_parked',
  'Events that have waited for more than 15 minutes to be processed, counted up to 100000.',
);

export const webhookOldestSeconds = level(
  'webhook_oldest_seconds',
  'Age of the oldest event that is not processed; 0: none.',
);

// Events to clients.

/** `given_up` beside the code of the last try: the event is not tried again by itself. */
export type WebhookOutResult =
  | 'delivered'
  | 'gone'
  | 'http_error'
  | 'redirected'
  | 'timed_out'
  | 'unreachable'
  | 'tls_failed'
  | 'name_unknown'
  | 'address_refused'
  | 'url_refused'
  | 'secret_unreadable'
  | 'given_up';
export const webhookOutTotal = count<{ result: WebhookOutResult }>(
  'webhook_out_total',
  'Tries to deliver an event to an endpoint of a client, by what each came to, and events given up.',
  ['result'],
);

export const webhookEndpointsDisabledTotal = count<{ reason: 'gone' | 'failing' }>(
  'webhook_endpoints_disabled_total',
  'Endpoints of clients that were disabled because nothing arrives there.',
  ['reason'],
);

export const webhookOutOldestSeconds = level(
  'webhook_out_oldest_seconds',
  'Longest time that an event to an active endpoint has been due and not under way; 0: none.',
);

// The worker.

export const armedPayments = level('armed_payments', 'Payments that this worker holds armed in its memory.');

export const leaseLostTotal = count(
  'lease_lost_total',
  'Times this worker found its own lease ended: it had been frozen.',
);

export const sweepRestartedTotal = count(
  'sweep_restarted_total',
  'Workflows that the sweep started because none was running.',
);

export const sweepWokenTotal = count('sweep_woken_total', 'Payments that the sweep woke.');

// The outbox.

export type OutboxWork = 'start' | 'wake' | 'cancel';
export const outboxOldestSeconds = level(
  'outbox_oldest_seconds',
  'How long an outbox row waits at most, without what may be put off; 0: none.',
);

export const outboxRows = level<{ kind: OutboxWork }>(
  'outbox_rows',
  'Outbox rows that wait, counted up to 100000.',
  ['kind'],
);

// Settlement.

export type SettlementBucket =
  | 'matched'
  | 'late'
  | 'returned'
  | 'other'
  | 'amount_differs'
  | 'currency_differs'
  | 'fee_differs'
  | 'sign_flipped'
  | 'unexpected_at_provider'
  | 'missing_at_provider'
  | 'duplicate'
  | 'unreadable';
/** Read from the tables, so that each process tells the rows of all imports since the first. */
export const settlementRowsTotal = count<{ bucket: SettlementBucket }>(
  'settlement_rows_total',
  'Rows of settlement files by what they came to, and payments that no row tells of; the same in every process.',
  ['bucket'],
);

// Integrity.

/** `id` is the number of the invariant as text. */
export const invariantViolations = level<{ id: string }>(
  'invariant_violations',
  'Rows that break the invariant, as found by its last run; -1: the last run could not check it.',
  ['id'],
);

export const invariantLastRunSeconds = level(
  'invariant_last_run_seconds',
  'When every invariant was last checked to its end (Unix time of this machine).',
);

export const anchorAgeSeconds = level(
  'anchor_age_seconds',
  'Age of the newest anchor of the history; while there is none, of the first transition.',
);

export const anchorRefused = count<{ reason: 'last_anchor_unproven' | 'counter_reset' }>(
  'anchor_refused_total',
  'Anchors that could not be made until somebody acts.',
  ['reason'],
);

export const chainOk = level(
  'chain_ok',
  '1: the last hourly look found the recent history whole; 0: broken; -1: it could not look.',
);

export const clockSkewSeconds = level<{ pair: 'process_database' }>(
  'clock_skew_seconds',
  'How far the clock of this machine is ahead of the database (negative: behind).',
  ['pair'],
);

export const recoveryHold = level('recovery_hold', '1 while the recovery hold is on.');

export const databaseGaugesLastRunSeconds = level(
  'database_gauges_last_run_seconds',
  'When the gauges read from the database were last refreshed (Unix time of this machine).',
);

// The process.

export const poolConnections = level<{ state: 'used' | 'idle' | 'waiting' }>(
  'pool_connections',
  'Connections of the pool by state, and callers that wait for one.',
  ['state'],
);

export const eventLoopDelaySeconds = level<{ quantile: '0.5' | '0.99' | '1' }>(
  'event_loop_delay_seconds',
  'Delay of the event loop since the last reading.',
  ['quantile'],
);
