import { sendCreates } from '../load/create-load.js';
import type { Figures, Measured, Scenario, World } from '../scenario.js';
import { pauseFor, waitUntil } from '../waiting.js';
import { outboxEmpty } from './payments-due.js';

const CONNECTIONS = 20;
const SECONDS = 15;
/** Due so late that nothing is armed during the run. */
const DUE_IN_MS = 86_400_000;
const LOOK_EVERY_MS = 250;
const VISIBLE_WITHIN_MS = 60_000;

export const creates: Scenario = {
  name: 'creates',
  title: 'Creates through HTTP at one API process',
  about:
    `${CONNECTIONS} connections that stay open send creates for ${SECONDS} s from a process of their own, each with ` +
    'an idempotency key of its own, each the next one when the answer before has come (a closed loop: it shows ' +
    'what is sustained, not what an overload does). The outbox relay runs in the same API process and starts the ' +
    'workflows meanwhile. An accepted create is a durable commit of payment, transition and outbox row. ' +
    'One connection alone shows what a create costs when it waits for no other, with the rate limits and ' +
    'without: the difference is theirs.',
  columns: {
    accepted: 'accepted',
    accepted_per_s: 'accepted per s',
    p50_ms: 'p50 (ms)',
    p99_ms: 'p99 (ms)',
    p99_by_p50: 'p99 ÷ p50',
    most_ms: 'slowest (ms)',
    refused: 'not accepted',
    behind_most: 'outbox rows at most',
    behind_at_end: 'outbox rows when the load ended',
    caught_up_s: 'caught up after (s)',
    started_per_s: 'workflows started per s',
    cpu_api_ms: 'CPU of the API per create (ms)',
    cpu_postgres_ms: 'CPU of Postgres per create (ms)',
  },
  runs: ({ scaled }) => [
    {
      label: `${CONNECTIONS} connections`,
      workers: 1,
      measure: (world) => measureCreates(world, { connections: CONNECTIONS, seconds: scaled(SECONDS) }),
    },
    ...(['on', 'off'] as const).map((limits) => ({
      label: `1 connection, limits ${limits}`,
      workers: 1,
      env: { PAYMENTS_RATE_LIMITS: limits },
      measure: (world: World) => measureCreates(world, { connections: 1, seconds: scaled(SECONDS) }),
    })),
  ],
};

interface Load {
  readonly connections: number;
  readonly seconds: number;
}

async function measureCreates(world: World, { connections, seconds }: Load): Promise<Measured> {
  world.say(`sending creates for ${seconds} s`);
  const from = world.load.mark();
  const startedAt = performance.now();
  const backlog = watchOutbox(world);
  const sent = await sendCreates(
    {
      url: world.stack.api_url,
      apiKey: world.stack.api_keys.client,
      connections,
      perSecond: null,
      seconds,
      dueFrom: Date.now() + DUE_IN_MS,
      keyPrefix: 'load',
    },
    {
      signal: world.signal,
      onStart: (pid) => world.load.watch('bench', pid),
      onResult: () => world.load.mark(),
    },
  );
  const loadEnd = world.load.mark();
  const endedAt = performance.now();
  const atEnd = await world.rows.outboxCount();
  await outboxEmpty(world);
  const emptyAt = performance.now();
  const behindMost = await backlog.stop();
  const to = world.load.mark();
  const { cpuMs } = world.load.between(from, loadEnd);
  return {
    figures: {
      accepted: sent.accepted,
      accepted_per_s: sent.accepted / sent.seconds,
      p50_ms: sent.p50,
      p99_ms: sent.p99,
      p99_by_p50: sent.p50 === null || sent.p99 === null ? null : sent.p99 / sent.p50,
      most_ms: sent.most,
      refused: showRefused(sent.refused),
      behind_most: Math.max(behindMost, atEnd),
      behind_at_end: atEnd,
      caught_up_s: (emptyAt - endedAt) / 1_000,
      started_per_s: (sent.accepted * 1_000) / (emptyAt - startedAt),
      ...cpuPerCreate(cpuMs, sent.accepted),
    },
    failures: await judgeCreates(world, sent.accepted, sent.refused),
    window: [from, to],
  };
}

function cpuPerCreate(cpuMs: Readonly<Record<string, number>>, accepted: number): Figures {
  const per = (group: string): number | null => (cpuMs[group] ? cpuMs[group] / accepted : null);
  return { cpu_api_ms: per('api'), cpu_postgres_ms: per('postgres') };
}

function showRefused(refused: Readonly<Record<string, number>>): string {
  const each = Object.entries(refused).map(([why, count]) => `${count} × ${why}`);
  return each.length === 0 ? '0' : each.join(', ');
}

/** Looks at the outbox until told to stop. */
function watchOutbox(world: World): { stop(): Promise<number> } {
  const ending = new AbortController();
  const signal = AbortSignal.any([world.signal, ending.signal]);
  let most = 0;
  const watch = async (): Promise<number> => {
    while (!signal.aborted) {
      most = Math.max(most, await world.rows.outboxCount());
      await pauseFor(LOOK_EVERY_MS, signal).catch(() => undefined);
    }
    return most;
  };
  const watching = watch();
  watching.catch(() => undefined); // Thrown again by `stop`.
  return {
    stop: () => {
      ending.abort();
      return watching;
    },
  };
}

/** Every 201 must have its row, its history, its workflow; nothing may have been paid. */
async function judgeCreates(
  world: World,
  accepted: number,
  refused: Readonly<Record<string, number>>,
): Promise<readonly string[]> {
  const failures: string[] = [];
  const wanted = accepted + world.warmUpIds.length;
  const rows = await world.rows.paymentCount();
  // Without an answer a create may have happened: the row is then allowed, the lost answer is not.
  if (rows < wanted) failures.push(`${wanted - rows} accepted payments have no row`);
  for (const [why, count] of Object.entries(refused)) {
    if (/^5|^no answer/.test(why)) failures.push(`${count} creates were answered ${why}`);
  }
  const areVisible = async (): Promise<boolean> => (await world.runs.count()) >= wanted;
  const waiting = { everyMs: 2 * LOOK_EVERY_MS, limitMs: VISIBLE_WITHIN_MS, signal: world.signal };
  if (!(await waitUntil(areVisible, waiting))) failures.push('Some accepted payments have no workflow');
  const view = await world.ledger.read();
  const early = view.firstArrival.size - world.warmUpIds.length;
  if (early > 0) failures.push(`${early} payments were paid a day early`);
  return [
    ...failures,
    ...(await world.rows.brokenHistories(world.warmUpIds, 'succeeded')),
    ...(await world.rows.brokenInvariants()),
  ];
}
