import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ActivityOptions } from '@temporalio/workflow';
import { describe, expect, it } from 'vitest';
import { CALL_DEADLINE_MS } from '../../../src/domain/submission-policy.js';
import * as policies from '../../../workflows/activity-policies.js';

/** Every export of the module is a policy, or makes one of the time until due. */
const every: readonly (readonly [string, ActivityOptions])[] = Object.entries(policies).map(
  ([name, policy]) => [name, typeof policy === 'function' ? policy(60_000) : policy],
);

describe('every policy of an activity (DC-05)', () => {
  it.each(every)('%s names its time-out, its attempts and its intervals', (_name, policy) => {
    expect(policy.startToCloseTimeout).toBeGreaterThan(0);
    const { retry } = policy;
    expect(retry?.maximumAttempts).toBeDefined();
    expect(retry?.initialInterval).toBeDefined();
    expect(retry?.maximumInterval).toBeDefined();
    expect(retry?.backoffCoefficient).toBeDefined();
  });

  it('is the only source of options: the workflow passes none of its own', () => {
    const source = readFileSync(
      join(import.meta.dirname, '../../../workflows/execute-payment.workflow.ts'),
      'utf8',
    );
    const proxies = [...source.matchAll(/proxyActivities<\w+>\((\w+)/g)].map((match) => match[1]);
    expect(proxies.length).toBeGreaterThan(0);
    expect(source.match(/proxyActivities</g)).toHaveLength(proxies.length);
    expect(source).not.toMatch(/proxyLocalActivities|executeLocalActivity|scheduleActivity/);
    for (const name of proxies) expect(Object.keys(policies)).toContain(name);
  });
});

describe('the armed pair', () => {
  it('may take the time until due and three minutes more', () => {
    expect(policies.armed(3_000).startToCloseTimeout).toBe(183_000);
  });

  it('of a payment past its time has its three minutes whole', () => {
    expect(policies.armed(-86_400_000).startToCloseTimeout).toBe(180_000);
  });

  it('beats no heart: each beat would be a write of the server', () => {
    expect(policies.armed(0).heartbeatTimeout).toBeUndefined();
  });
});

it('an inquiry has time for one whole lookup', () => {
  expect(policies.INQUIRE.startToCloseTimeout).toBeGreaterThan(CALL_DEADLINE_MS);
});
