import { judgePaid } from '../judge/judge-run.js';
import type { Measured, Scenario, World } from '../scenario.js';
import { pauseFor, waitForInstant } from '../waiting.js';
import { dueAfterSetUp, eventFigures, secondsAfter, settle, setUpPayments } from './payments-due.js';

const PAYMENTS = 1_000;
const RETRY_AFTER_S = 60;
const THROTTLED_S = 180;
const AWAY_S = 300;

export const providerAway: Scenario = {
  name: 'provider-away',
  title: 'A provider that has had enough, and then is gone',
  about:
    `From the due time of all payments on, the provider answers 429 with Retry-After ${RETRY_AFTER_S} for ` +
    `${THROTTLED_S} s; then its process is killed and comes back after ${AWAY_S} s, honest. Every payment must be ` +
    'paid once and none may fail. Requests and calls count what the lane let through meanwhile.',
  columns: {
    payments: 'payments',
    throttled_requests: 'requests while it throttled',
    away_calls: 'calls while it was away',
    drained_s: 'last call after it came back (s)',
    final_s: 'all final after it came back (s)',
    unknown: 'unknown on the way',
    events: 'events per payment',
  },
  runs: ({ scaled }) => {
    const count = scaled(PAYMENTS);
    const times = { throttledS: scaled(THROTTLED_S), awayS: scaled(AWAY_S) };
    return [{ label: `${count} due`, workers: 1, measure: (world) => measureAway(world, count, times) }];
  },
};

async function measureAway(
  world: World,
  count: number,
  { throttledS, awayS }: { readonly throttledS: number; readonly awayS: number },
): Promise<Measured> {
  const { ledger, rows, stack, signal } = world;
  const from = world.load.mark();
  const dueAt = dueAfterSetUp(world, count);
  const setUp = await setUpPayments(world, count, dueAt);
  await ledger.throttle(RETRY_AFTER_S);
  const requestsBefore = await ledger.requests('submit');
  await waitForInstant(dueAt, signal);
  world.say(`the provider throttles for ${throttledS} s`);
  await pauseFor(throttledS * 1_000, signal);
  const throttledRequests = (await ledger.requests('submit')) - requestsBefore;
  const unsentBefore = await rows.attemptsOf('not_sent');
  await stack.kill('simulator');
  world.say(`the provider is gone for ${awayS} s`);
  await pauseFor(awayS * 1_000, signal);
  const awayCalls = (await rows.attemptsOf('not_sent')) - unsentBefore;
  await stack.restart('simulator');
  const backAt = Date.now();
  world.say('the provider is back');
  const settled = await settle(world, setUp.payments);
  const to = world.load.mark();
  const ids = setUp.payments.map((payment) => payment.id);
  const judged = await judgePaid(world, setUp.payments);
  const lastCallAt = Math.max(...ids.map((id) => judged.arrivals.get(id) ?? 0));
  return {
    figures: {
      payments: count,
      throttled_requests: throttledRequests,
      away_calls: awayCalls,
      drained_s: secondsAfter(backAt, lastCallAt),
      final_s: secondsAfter(backAt, settled.finalAt),
      unknown: await rows.everIn('unknown', ids),
      ...(await eventFigures(world, setUp.payments)),
    },
    failures: [...setUp.failures, ...settled.failures, ...judged.failures],
    window: [from, to],
  };
}
