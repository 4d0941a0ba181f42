import { judgePaid } from '../judge/judge-run.js';
import { sendCreates, type CreateLoad, type CreateLoadResult } from '../load/create-load.js';
import type { CreatedPayment } from '../load/payment-creator.js';
import { distribution } from '../report/distribution.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { pauseFor, waitUntil } from '../waiting.js';
import { outboxEmpty, setUpPayments } from './payments-due.js';

const DUE = 1_000;
const CAPACITY_SECONDS = 10;
const CONNECTIONS = 20;
const SECONDS = 120;
const TIMES_CAPACITY = 2.5;
/** Above what the API holds in progress, so that it has to turn some away. */
const OPEN_CONNECTIONS = 800;
const LATE_DUE_IN_MS = 86_400_000;
/** The 1,000 fall due in the middle of the load. */
const DUE_AFTER_LOAD_BEGAN_MS = 60_000;
const FINAL_WITHIN_MS = 120_000;
const SET_UP_MS = 60_000;

export const overload: Scenario = {
  name: 'overload',
  title: 'More creates than the API can take, while payments come due',
  about:
    `What a closed loop of ${CONNECTIONS} connections reaches in ${CAPACITY_SECONDS} s is the capacity. Then creates ` +
    `are offered at ${TIMES_CAPACITY} times that for ${SECONDS} s whatever the answers (an open loop; a create that finds ` +
    `all ${OPEN_CONNECTIONS} connections busy is not sent), ${DUE} payments come due in the middle of it, and one payment ` +
    'a second is cancelled. Only 201, 429 and 503 with Retry-After may be answered, and whatever was accepted is there.',
  columns: {
    capacity_per_s: 'capacity (per s)',
    offered_per_s: 'offered (per s)',
    accepted_per_s: 'accepted (per s)',
    goodput: 'accepted ÷ capacity',
    p50_ms: 'accepted, p50 (ms)',
    p99_ms: 'accepted, p99 (ms)',
    refused: 'refused',
    unsent: 'not sent',
    cancels: 'cancels',
    cancel_p50_ms: 'cancel, p50 (ms)',
    cancel_p99_ms: 'cancel, p99 (ms)',
    late_p50_ms: 'due payments late, p50 (ms)',
    late_p99_ms: 'p99 (ms)',
    late_most_ms: 'latest (ms)',
  },
  runs: ({ scaled }) => [
    {
      label: `${TIMES_CAPACITY} × capacity`,
      workers: 1,
      measure: (world) => measureOverload(world, scaled(DUE), scaled(SECONDS)),
    },
  ],
};

async function measureOverload(world: World, dueCount: number, seconds: number): Promise<Measured> {
  world.say('looking for the capacity');
  const closed = await offer(world, { connections: CONNECTIONS, seconds: CAPACITY_SECONDS, perSecond: null });
  const capacity = closed.accepted / closed.seconds;
  await outboxEmpty(world);
  const dueAt = Math.ceil((Date.now() + SET_UP_MS + DUE_AFTER_LOAD_BEGAN_MS) / 1_000) * 1_000;
  const setUp = await setUpPayments(world, dueCount, dueAt);
  const toCancel = await world.creator.createAll(seconds, Date.now() + LATE_DUE_IN_MS, world.signal);
  await pauseFor(Math.max(0, dueAt - (seconds / 2) * 1_000 - Date.now()), world.signal);
  world.say(`offering ${Math.round(capacity * TIMES_CAPACITY)} creates a second for ${seconds} s`);
  const from = world.load.mark();
  const [open, cancels] = await Promise.all([
    offer(world, { connections: OPEN_CONNECTIONS, seconds, perSecond: capacity * TIMES_CAPACITY }),
    cancelEachSecond(world, toCancel),
  ]);
  const to = world.load.mark();
  // What was offered is due tomorrow and has no workflow yet, tens of thousands of them: only the others end.
  const ended = world.warmUpIds.length + setUp.payments.length + toCancel.length;
  const haveEnded = async (): Promise<boolean> => (await world.rows.finalCount()) >= ended;
  const areFinal = await waitUntil(haveEnded, {
    everyMs: 250,
    limitMs: FINAL_WITHIN_MS,
    signal: world.signal,
  });
  const judged = await judgePaid(world, setUp.payments);
  const cancelled = distribution(cancels.times);
  return {
    figures: {
      capacity_per_s: capacity,
      offered_per_s: capacity * TIMES_CAPACITY,
      accepted_per_s: open.accepted / open.seconds,
      goodput: open.accepted / open.seconds / capacity,
      p50_ms: open.p50,
      p99_ms: open.p99,
      refused: show(open.refused),
      unsent: open.unsent,
      cancels: cancels.times.length,
      cancel_p50_ms: cancelled.p50,
      cancel_p99_ms: cancelled.p99,
      late_p50_ms: judged.lateness.p50,
      late_p99_ms: judged.lateness.p99,
      late_most_ms: judged.lateness.most,
    },
    failures: [
      ...setUp.failures,
      ...(areFinal ? [] : ['Not every due payment was final in time']),
      ...judged.failures,
      ...cancels.failures,
      ...(await judgeOffered(world, [closed, open], setUp.payments.length + toCancel.length)),
    ],
    window: [from, to],
  };
}

function offer(
  world: World,
  of: Pick<CreateLoad, 'connections' | 'seconds' | 'perSecond'>,
): Promise<CreateLoadResult> {
  return sendCreates(
    {
      ...of,
      url: world.stack.api_url,
      apiKey: world.stack.api_keys.client,
      dueFrom: Date.now() + LATE_DUE_IN_MS,
      keyPrefix: of.perSecond === null ? 'capacity' : 'overload',
    },
    {
      signal: world.signal,
      onStart: (pid) => world.load.watch('bench', pid),
      onResult: () => world.load.mark(),
    },
  );
}

interface Cancels {
  /** Of those that were answered 200, ms. */
  readonly times: readonly number[];
  readonly failures: readonly string[];
}

/** One cancel a second, as a client whose payment must not go out: what is refused is a failure. */
async function cancelEachSecond(world: World, payments: readonly CreatedPayment[]): Promise<Cancels> {
  const times: number[] = [];
  const failures: string[] = [];
  const startedAt = performance.now();
  for (const [index, { id }] of payments.entries()) {
    await pauseFor(Math.max(0, startedAt + index * 1_000 - performance.now()), world.signal);
    const sentAt = performance.now();
    const answer = await fetch(`${world.stack.api_url}/v1/payments/${id}/cancel`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.stack.api_keys.client}` },
    });
    await answer.body?.cancel();
    if (answer.status === 200) times.push(performance.now() - sentAt);
    else failures.push(`a cancel was answered ${answer.status}`);
  }
  return { times, failures };
}

/** Whatever was accepted has its row, and nothing else was answered than what overload may answer. */
async function judgeOffered(
  world: World,
  results: readonly CreateLoadResult[],
  others: number,
): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const { refused, withoutRetryAfter } of results) {
    for (const [why, count] of Object.entries(refused)) {
      if (!/^(429|503) /.test(why)) failures.push(`${count} creates were answered ${why}`);
    }
    if (withoutRetryAfter > 0) failures.push(`${withoutRetryAfter} refusals had no Retry-After`);
  }
  const accepted = results.reduce((sum, result) => sum + result.accepted, 0);
  const lost = accepted + others + world.warmUpIds.length - (await world.rows.paymentCount());
  // A create without an answer may have happened: more rows are allowed, fewer are not.
  if (lost > 0) failures.push(`${lost} accepted payments have no row`);
  return failures;
}

function show(refused: Readonly<Record<string, number>>): string {
  const each = Object.entries(refused).map(([why, count]) => `${count} × ${why}`);
  return each.length === 0 ? '0' : each.join(', ');
}
