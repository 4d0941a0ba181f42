import type { CreatedPayment } from '../load/payment-creator.js';
import type { LoadShare } from '../sampling/load-sampler.js';
import type { Figures, World } from '../scenario.js';
import { waitForInstant, waitUntil } from '../waiting.js';

/** A payment arms three seconds ahead; a fast lane arms a hundred a second before that. */
const ARM_LEAD_MS = 3_000;
const ARMED_PER_SECOND = 100;
const EARLIEST_ARM_MS = 120_000;
/** Payments a second that creating and starting surely reach on two cores. */
const SET_UP_PER_SECOND = { dev: 60, postgres: 100 } as const;
const SPARE_MS = 10_000;

const LOOK_EVERY_MS = 250;
const SET_UP_WITHIN_MS = 300_000;
const FINAL_WITHIN_MS = 180_000;
const CLOSED_WITHIN_MS = 240_000;

/** The product, without the simulated provider and the bench itself. */
const PRODUCT_GROUPS = ['api', 'worker', 'postgres', 'temporal', 'temporal-postgres'] as const;
const EVENTS_SAMPLE = 40;

/** A whole second so far ahead that creating, starting and arming `count` payments ends before it. */
export function dueAfterSetUp(world: World, count: number): number {
  const setUpMs = (count * 1_000) / SET_UP_PER_SECOND[world.temporal];
  const armMs = Math.min(EARLIEST_ARM_MS, (count * 1_000) / ARMED_PER_SECOND) + ARM_LEAD_MS;
  return Math.ceil((Date.now() + setUpMs + armMs + SPARE_MS) / 1_000) * 1_000;
}

export interface SetUp {
  readonly payments: readonly CreatedPayment[];
  readonly figures: Figures;
  readonly failures: readonly string[];
}

/** Creates payments due at one instant through the API and waits until each has its workflow. */
export async function setUpPayments(world: World, count: number, dueAt: number): Promise<SetUp> {
  world.say(`creating ${count} payments due in ${Math.round((dueAt - Date.now()) / 1_000)} s`);
  const startedAt = performance.now();
  const payments = await world.creator.createAll(count, dueAt, world.signal);
  const createdPerSecond = (count * 1_000) / (performance.now() - startedAt);
  await world.ledger.expect(new Map(payments.map((payment) => [payment.id, payment.dueAt])));
  await outboxEmpty(world);
  const spareS = (dueAt - Date.now()) / 1_000;
  return {
    payments,
    figures: { created_per_s: createdPerSecond, set_up_before_due_s: spareS },
    failures:
      spareS < ARM_LEAD_MS / 1_000 ? ['The set-up ended too late: the figures show that, not the burst'] : [],
  };
}

/** Each payment is created so long before it is due: more than the arm lead and a slow start. */
export const AHEAD_MS = 10_000;

/** Sends each create at its own time, whatever became of the ones before. @throws at the first refusal. */
export async function createAtRate(world: World, rate: number, count: number): Promise<CreatedPayment[]> {
  const startAt = Date.now();
  const failure = new AbortController();
  const signal = AbortSignal.any([world.signal, failure.signal]);
  const created: Promise<CreatedPayment>[] = [];
  for (let i = 0; i < count; i++) {
    const at = startAt + Math.round((i * 1_000) / rate);
    await waitForInstant(at, signal);
    const answer = world.creator.create(at + AHEAD_MS);
    answer.catch((error: unknown) => failure.abort(error));
    created.push(answer);
  }
  return Promise.all(created);
}

/** @throws Error when the relay does not get there. */
export async function outboxEmpty(world: World): Promise<void> {
  const isEmpty = async (): Promise<boolean> => (await world.rows.outboxCount()) === 0;
  const waiting = { everyMs: LOOK_EVERY_MS, limitMs: SET_UP_WITHIN_MS, signal: world.signal };
  if (!(await waitUntil(isEmpty, waiting))) throw new Error('The outbox did not become empty.');
}

export interface Settled {
  /** Newest final transition and newest end of a workflow, epoch ms; null: not all got there. */
  readonly finalAt: number | null;
  readonly closedAt: number | null;
  readonly failures: readonly string[];
}

/** Waits until all payments of the stack are final in Postgres and their workflows have ended. */
export async function settle(world: World, payments: readonly CreatedPayment[]): Promise<Settled> {
  const { signal, rows, runs } = world;
  const all = world.warmUpIds.length + payments.length;
  const failures: string[] = [];
  let found = 0;
  const isFinal = async (): Promise<boolean> => (found = await rows.finalCount()) >= all;
  const areFinal = await waitUntil(isFinal, { everyMs: LOOK_EVERY_MS, limitMs: FINAL_WITHIN_MS, signal });
  if (!areFinal)
    failures.push(`Only ${found} of ${all} payments were final after ${FINAL_WITHIN_MS / 1_000} s`);
  const isClosed = async (): Promise<boolean> => (found = await runs.closedCount()) >= all;
  const areClosed =
    areFinal &&
    (await waitUntil(isClosed, { everyMs: 2 * LOOK_EVERY_MS, limitMs: CLOSED_WITHIN_MS, signal }));
  if (areFinal && !areClosed) failures.push(`Only ${found} of ${all} workflows had ended`);
  return {
    finalAt: areFinal ? await rows.lastFinalAt(payments.map((payment) => payment.id)) : null,
    closedAt: areClosed ? await runs.lastClosedAt() : null,
    failures,
  };
}

/** Seconds between two instants (epoch ms); null when the second is not known. */
export function secondsAfter(from: number, to: number | null): number | null {
  return to === null ? null : (to - from) / 1_000;
}

/** CPU time of the product, ms. */
export function productCpuMs(share: LoadShare): number {
  return PRODUCT_GROUPS.reduce((sum, group) => sum + (share.cpuMs[group] ?? 0), 0);
}

/** Headings of `cpuFigures`. */
export const CPU_COLUMNS = {
  cpu_ms: 'CPU per payment (ms)',
  cpu_idle_ms: 'of that what the idle stack uses (ms)',
  cpu_parts_ms: 'by part (ms)',
} as const;

/** CPU time of the product per payment: whole, what it would have used with nothing to do, by part. */
export function cpuFigures(world: World, share: LoadShare, payments: number): Figures {
  if (share.foreignCores === null) return { cpu_ms: null, cpu_idle_ms: null, cpu_parts_ms: null };
  const parts = PRODUCT_GROUPS.map((group) => [group, (share.cpuMs[group] ?? 0) / payments] as const);
  return {
    cpu_ms: productCpuMs(share) / payments,
    cpu_idle_ms: world.idleCores === null ? null : (world.idleCores * 1_000 * share.seconds) / payments,
    cpu_parts_ms: parts
      .filter(([, ms]) => ms > 0)
      .map(([group, ms]) => `${group} ${ms.toFixed(1)}`)
      .join(', '),
  };
}

/** Events in the history of a payment: fewest, median, most of a sample. */
export async function eventFigures(
  world: World,
  payments: readonly CreatedPayment[],
  most = EVENTS_SAMPLE,
): Promise<Figures> {
  const sample = await world.runs.sampleHistories(
    payments.map((payment) => payment.id),
    most,
  );
  return { events: sample.events.join('/'), rearmed: `${sample.rearmed} of ${sample.payments}` };
}

/** Payments that the workers hold armed now, by their own metrics. */
export async function armedCount(world: World): Promise<number> {
  const texts = await Promise.all(
    world.stack.worker_health_urls.map(async (url) => (await fetch(`${url}/metrics`)).text()),
  );
  return texts.reduce((sum, text) => sum + Number(/^payments_armed_payments (\d+)/m.exec(text)?.[1] ?? 0), 0);
}
