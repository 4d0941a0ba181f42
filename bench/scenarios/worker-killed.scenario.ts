import { judgePaid } from '../judge/judge-run.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { waitForInstant, waitUntil } from '../waiting.js';
import { dueAfterSetUp, eventFigures, secondsAfter, settle, setUpPayments } from './payments-due.js';

const PAYMENTS = 500;
/** The provider answers late, so that at the kill some calls are over, some under way, some to come. */
const PROVIDER_TAKES_MS = 100;
/** The kill comes when this share is paid. */
const PAID_AT_KILL = 0.25;
const LOOK_EVERY_MS = 20;
const FIRST_CALLS_WITHIN_MS = 60_000;

type Kill = 'the only worker, restarted at once' | 'one of two workers';

export const workerKilled: Scenario = {
  name: 'worker-killed',
  title: 'A worker killed with SIGKILL in the middle of a burst',
  about:
    `The worker is killed when a quarter of the payments is paid; the provider answers after ${PROVIDER_TAKES_MS} ms, ` +
    'so calls are under way. Every payment must be paid once and become final without help. Times count from the ' +
    'kill. "Unknown" counts the payments whose outcome had to be asked of the provider.',
  columns: {
    payments: 'payments',
    final_s: 'all final after (s)',
    closed_s: 'all workflows ended after (s)',
    paid_at_kill: 'paid at the kill',
    final_at_kill: 'final at the kill',
    worker_ready_s: 'worker ready again after (s)',
    last_call_s: 'last call after the kill (s)',
    unknown: 'unknown on the way',
    events: 'events per payment',
  },
  runs: ({ scaled }) => [
    {
      label: 'the only worker, restarted at once',
      workers: 1,
      measure: (world) => measureKill(world, scaled(PAYMENTS), 'the only worker, restarted at once'),
    },
    {
      label: 'one of two workers',
      workers: 2,
      measure: (world) => measureKill(world, scaled(PAYMENTS), 'one of two workers'),
    },
  ],
};

async function measureKill(world: World, count: number, kill: Kill): Promise<Measured> {
  await world.ledger.answerLate(PROVIDER_TAKES_MS);
  const from = world.load.mark();
  const paidBefore = await world.ledger.paid();
  const dueAt = dueAfterSetUp(world, count);
  const setUp = await setUpPayments(world, count, dueAt);
  await waitForInstant(dueAt, world.signal);
  const isUnderWay = async (): Promise<boolean> =>
    (await world.ledger.paid()) - paidBefore >= count * PAID_AT_KILL;
  const waiting = { everyMs: LOOK_EVERY_MS, limitMs: FIRST_CALLS_WITHIN_MS, signal: world.signal };
  if (!(await waitUntil(isUnderWay, waiting)))
    throw new Error('A quarter was never paid: nothing to disturb.');
  world.load.mark(); // What the worker did until now must not be lost with it.
  const killedAt = Date.now();
  await world.stack.kill('worker');
  const paidAtKill = (await world.ledger.paid()) - paidBefore;
  const finalAtKill = (await world.rows.finalCount()) - world.warmUpIds.length;
  if (kill === 'the only worker, restarted at once') await world.stack.restart('worker');
  const readyAt = kill === 'one of two workers' ? null : Date.now();
  const settled = await settle(world, setUp.payments);
  const to = world.load.mark();
  const ids = setUp.payments.map((payment) => payment.id);
  const judged = await judgePaid(world, setUp.payments);
  const lastCallAt = Math.max(...ids.map((id) => judged.arrivals.get(id) ?? 0));
  return {
    figures: {
      payments: count,
      final_s: secondsAfter(killedAt, settled.finalAt),
      closed_s: secondsAfter(killedAt, settled.closedAt),
      paid_at_kill: paidAtKill,
      final_at_kill: finalAtKill,
      worker_ready_s: secondsAfter(killedAt, readyAt),
      last_call_s: secondsAfter(killedAt, lastCallAt),
      unknown: await world.rows.everIn('unknown', ids),
      ...(await eventFigures(world, setUp.payments)),
    },
    failures: [
      ...setUp.failures,
      ...(finalAtKill >= count ? ['All were final before the kill: nothing was disturbed'] : []),
      ...settled.failures,
      ...judged.failures,
    ],
    window: [from, to],
  };
}
