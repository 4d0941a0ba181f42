import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { Worker } from '@temporalio/worker';
import { beforeAll, describe, expect, it } from 'vitest';
import { installQuietRuntime } from '../support/time-skipping.js';
import { workflowBundle, type WorkflowBundle } from '../support/workflow-bundle.js';
import { rigEvents, type RigEvent } from '../support/workflow-history.js';
import { readHistoryFiles } from './history-files.js';
import { SCENARIOS } from './scenarios.js';

const WORKFLOW = 'workflows/execute-payment.workflow.ts';
/** The two commands of a pair, as the workflow's source has them. */
const BEGIN = `    if (!this.submitOnly) {
      this.underWay++;
      void pair.beginSubmission(payment).then((answer) => {
        this.underWay--;
        if (answer.kind !== 'started') settle(answer);
      });
    }
`;
const SUBMIT = `    this.submitOnly = false;
    this.underWay++;
    void pair.submitPayment(payment).then((answer) => {
      this.underWay--;
      settle(answer);
    });
`;
const files = readHistoryFiles();
const histories = files.map(({ file, history }) => ({ workflowId: file, history }));

/** "replays", or why not, by file. */
async function replay(workflowBundle: WorkflowBundle): Promise<Readonly<Record<string, string>>> {
  const results: Record<string, string> = {};
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
    results[workflowId] = error ? error.name : 'replays';
  }
  return results;
}

function eventsOf(scenario: string): readonly RigEvent[] {
  const found = files.filter((file) => file.scenario === scenario).at(-1);
  if (!found) throw new Error(`no history of ${scenario}`);
  return rigEvents(found.history);
}

beforeAll(installQuietRuntime);

describe('every committed history (TP-01)', () => {
  let results: Readonly<Record<string, string>>;
  beforeAll(async () => {
    results = await replay(await workflowBundle());
  });

  it.each(files.map(({ file }) => file))('replays on the workflow code of today: %s', (file) => {
    expect(results[file]).toBe('replays');
  });

  it('is one of the scenarios, and none of them is missing', () => {
    expect([...new Set(files.map((file) => file.scenario))].sort()).toEqual(Object.keys(SCENARIOS).sort());
  });

  it('names no machine, folder or stack', () => {
    for (const { file, text } of files) {
      expect(text, file).not.toMatch(/node_modules|\.[jt]s:\d|"\/|@[a-z0-9-]+"|stackTrace": "[^"]/i);
      expect(text.includes(hostname()), file).toBe(false);
      const identities = [...text.matchAll(/"identity": "([^"]*)"/g)].map((match) => match[1]);
      expect(new Set(identities), file).toEqual(new Set(['recorder']));
    }
  });

  it('gives every activity its time-out and its attempts (DC-05)', () => {
    const scheduled = files
      .flatMap((file) => rigEvents(file.history))
      .filter((event) => event.name === 'activityTaskScheduled')
      .map((event) => event.attributes as unknown as ScheduledActivity);
    expect(new Set(scheduled.map((activity) => activity.activityType.name))).toEqual(
      new Set(['beginSubmission', 'submitPayment', 'inquire', 'cancelPayment', 'look']),
    );
    for (const { activityType, startToCloseTimeout, retryPolicy } of scheduled) {
      const seconds = Number(startToCloseTimeout.seconds);
      expect(seconds, activityType.name).toBeGreaterThanOrEqual(10);
      expect(seconds, activityType.name).toBeLessThanOrEqual(190);
      // The server's own default would be 1 s, doubling to 100 s.
      expect(retryPolicy.initialInterval.nanos, activityType.name).toBe(200_000_000);
      expect(Number(retryPolicy.maximumInterval.seconds), activityType.name).toBe(5);
    }
  });

  it('is as short as promised: 14 to 16 events for a life that nobody touches', () => {
    expect(eventsOf('due').length).toBeGreaterThanOrEqual(14);
    expect(eventsOf('due').length).toBeLessThanOrEqual(16);
    for (const scenario of ['cancelled-early', 'cancelled-armed']) {
      expect(eventsOf(scenario).length, scenario).toBeGreaterThanOrEqual(12);
      expect(eventsOf(scenario).length, scenario).toBeLessThanOrEqual(24);
    }
    for (const scenario of ['rescheduled', 'lane-busy', 'held-released']) {
      expect(eventsOf(scenario).length, scenario).toBeLessThanOrEqual(16 + 2 * 14);
    }
  });
});

describe('a change of the order of commands is caught', () => {
  const changes = [
    {
      name: 'another activity in the place of submitPayment',
      find: 'void pair.submitPayment(payment)',
      replace: 'void (pair as any).payNow(payment)',
    },
    {
      name: 'a timer before the pair is armed',
      find: '      this.arm();\n      return null;',
      replace: '      await condition(() => false, 1);\n      this.arm();\n      return null;',
    },
    {
      name: 'submitPayment before beginSubmission',
      find: BEGIN + SUBMIT,
      replace: SUBMIT.replace('this.submitOnly = false;', '') + BEGIN,
    },
  ];

  it.each(changes)('$name', async ({ find, replace }) => {
    const results = await replay(await workflowBundle({ file: WORKFLOW, find, replace }));
    expect(results[files.find((file) => file.scenario === 'due')?.file ?? '']).toBe(
      'DeterminismViolationError',
    );
  });

  it('and a copy without a change replays, so that it is the change that is caught', async () => {
    const find = 'export async function executePayment(';
    const results = await replay(
      await workflowBundle({ file: WORKFLOW, find, replace: `/* a copy */ ${find}` }),
    );
    expect(new Set(Object.values(results))).toEqual(new Set(['replays']));
  });
});

it('one protobufjs serves all packages of the SDK: with two, no history can be read from JSON', () => {
  const here = createRequire(import.meta.url);
  const seenBy = (name: string): string =>
    createRequire(here.resolve(name)).resolve('protobufjs/package.json');
  expect(seenBy('@temporalio/common')).toBe(seenBy('@temporalio/proto'));
  expect(seenBy('@temporalio/common')).toBe(here.resolve('protobufjs/package.json'));
});

interface ScheduledActivity {
  readonly activityType: { readonly name: string };
  readonly startToCloseTimeout: { readonly seconds: unknown };
  readonly retryPolicy: {
    readonly initialInterval: { readonly nanos: number };
    readonly maximumInterval: { readonly seconds: unknown };
  };
}
