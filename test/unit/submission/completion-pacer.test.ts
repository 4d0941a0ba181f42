import { describe, expect, it } from 'vitest';
import { ArmedPayments } from '../../../src/submission/armed-payments.js';
import { CompletionPacer } from '../../../src/submission/completion-pacer.js';

const PAYMENT = { paymentId: 'pay_a', lane: 'simulated/default', version: 1 };

function world(gateIsBusy = () => false) {
  const armed = new ArmedPayments();
  return { armed, pacer: new CompletionPacer(armed, gateIsBusy) };
}

describe('the completion pacer', () => {
  it('lets both results of a pair go together, when the second is there', async () => {
    const { armed, pacer } = world();
    const entry = armed.enter(PAYMENT, 'begin');
    armed.enter(PAYMENT, 'submit');
    const order: string[] = [];
    const begin = pacer.leave(entry).then(() => order.push('begin'));
    await Promise.resolve();
    expect(order).toEqual([]);
    const submit = pacer.leave(entry).then(() => order.push('submit'));
    await Promise.all([begin, submit]);
    expect(order).toEqual(['begin', 'submit']);
    expect(armed.size).toBe(0);
  });

  it('lets a result go that waited for an activity which then answered at once', async () => {
    const { armed, pacer } = world();
    const entry = armed.enter(PAYMENT, 'begin');
    armed.enter(PAYMENT, 'submit');
    const begin = pacer.leave(entry);
    pacer.quit(entry);
    await begin;
    expect(armed.size).toBe(0);
  });

  it('holds results back while a gate has waiters that can go, and lets them go when it has none', async () => {
    let busy = true;
    let looks = 0;
    const { armed, pacer } = world(() => {
      looks++;
      return busy;
    });
    const entry = armed.enter(PAYMENT, 'submit');
    let gone = false;
    const left = pacer.leave(entry).then(() => (gone = true));
    await expect.poll(() => looks).toBeGreaterThan(2);
    expect(gone).toBe(false);
    busy = false;
    await left;
  });

  it('holds nothing back while the worker drains', async () => {
    const { armed, pacer } = world(() => true);
    const entry = armed.enter(PAYMENT, 'submit');
    const left = pacer.leave(entry);
    armed.drain(() => true);
    await left;
  });
});
