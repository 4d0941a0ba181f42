import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { createPaymentActivities, type PaymentServices } from '../../../activities/payment.activities.js';
import type { PaymentActivities } from '../../../workflows/contract.js';

const ARMED = { paymentId: 'pay_1', lane: 'simulated', version: 3 };
const NAMES = ['beginSubmission', 'submitPayment', 'inquire', 'cancelPayment', 'look'] as const;

/** Services that all answer the same way, and what they were asked. */
function services(answer: (input: unknown) => unknown) {
  const asked: unknown[] = [];
  const faults: [string, unknown][] = [];
  const serve = async (input: unknown): Promise<never> => {
    asked.push(input);
    return answer(input) as never;
  };
  const all: PaymentServices = {
    begin: { beginSubmission: serve },
    submit: { submitPayment: serve },
    inquiry: { inquire: serve },
    commands: { cancelPayment: serve, look: serve },
    onFault: (operation, error) => faults.push([operation, error]),
  };
  return { activities: createPaymentActivities(all), asked, faults };
}

async function thrownBy(activities: PaymentActivities, name: (typeof NAMES)[number]): Promise<unknown> {
  return activities[name](ARMED).then(
    () => null,
    (error: unknown) => error,
  );
}

describe('the activities', () => {
  it('are these and no others', () => {
    expect(Object.keys(services(() => null).activities).sort()).toEqual([...NAMES].sort());
  });

  it.each(NAMES)('%s hands its input to its service and the answer back', async (name) => {
    const answer = { kind: 'stopped', state: 'succeeded' };
    const { activities, asked, faults } = services(() => answer);
    expect(await activities[name](ARMED)).toBe(answer);
    expect(asked).toEqual([ARMED]);
    expect(faults).toEqual([]);
  });

  it.each([
    ['beginSubmission', 'begin-submission'],
    ['submitPayment', 'submit-payment'],
    ['inquire', 'inquire'],
    ['cancelPayment', 'cancel'],
    ['look', 'look'],
  ] as const)('%s tells of a fault under its operation, and throws a code', async (name, operation) => {
    const fault = new Error('secret');
    const { activities, faults } = services(() => {
      throw fault;
    });
    const thrown = await thrownBy(activities, name);
    expect(thrown).toBeInstanceOf(ApplicationFailure);
    expect(thrown).toMatchObject({ message: 'internal', nonRetryable: false });
    expect(faults).toEqual([[operation, fault]]);
  });

  it('inquire throws what is undecided as a wait, and no fault is told', async () => {
    const { activities, faults } = services(() => ({ kind: 'undecided', afterMs: 15_000 }));
    expect(await thrownBy(activities, 'inquire')).toMatchObject({
      message: 'undecided',
      nextRetryDelay: 15_000,
    });
    expect(faults).toEqual([]);
  });
});
