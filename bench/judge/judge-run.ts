import type { CreatedPayment } from '../load/payment-creator.js';
import { distribution, type Distribution } from '../report/distribution.js';
import type { World } from '../scenario.js';

export interface RunJudgement {
  /** First arrival at the provider minus due time, ms, by the provider's clock. */
  readonly lateness: Distribution;
  /** Arrivals by payment id, epoch ms. */
  readonly arrivals: ReadonlyMap<string, number>;
  /** Sentences; empty when everything was right. */
  readonly failures: readonly string[];
}

/**
 * Judges payments that should all have been paid once, by the provider's ledger first and by the
 * product's own tables second. Call it when they had time to become final.
 */
export async function judgePaid(world: World, payments: readonly CreatedPayment[]): Promise<RunJudgement> {
  const view = await world.ledger.read();
  const ids = payments.map((payment) => payment.id);
  const failures: string[] = [];
  const fail = (count: number, what: string): void => {
    if (count > 0) failures.push(`${count} payments ${what}`);
  };
  fail(view.duplicates.length, 'were paid more than once');
  fail(view.early.length, 'were paid before the time that the provider had been told');
  const late = payments.flatMap((payment) => {
    const arrivedAt = view.firstArrival.get(payment.id);
    return arrivedAt === undefined ? [] : [arrivedAt - payment.dueAt];
  });
  fail(late.filter((ms) => ms < 0).length, 'were paid early');
  fail(payments.length - late.length, 'never reached the provider');
  failures.push(...(await world.rows.brokenHistories([...world.warmUpIds, ...ids], 'succeeded')));
  failures.push(...(await world.rows.brokenInvariants()));
  for (const event of world.stack.events) failures.push(`${event.name} ${event.kind} by itself`);
  return { lateness: distribution(late), arrivals: view.firstArrival, failures };
}
