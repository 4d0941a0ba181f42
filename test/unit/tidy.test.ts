import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TRANSITIONS } from '../../src/domain/payment-state.js';
import { faultsIn, projectFiles, testTitles, TIDY_RULES } from '../support/tidy-rules.js';

const files = projectFiles(resolve(import.meta.dirname, '../..'));

describe('the project is tidy', () => {
  it('and all of it is looked at', () => {
    const paths = files.map((file) => file.path);
    for (const path of ['src/payments/gate.ts', 'workflows/contract.ts', 'README.md', 'package.json']) {
      expect(paths).toContain(path);
    }
    expect(paths.filter((path) => path.includes('node_modules'))).toEqual([]);
  });

  it.each(TIDY_RULES)('$name', (rule) => {
    expect(faultsIn(rule, files)).toEqual([]);
  });

  it.each(TRANSITIONS.map((transition) => transition.id))(
    '%s of the transition table has a named test',
    (id) => {
      const named = testTitles(files).filter((title) => new RegExp(`\\b${id}\\b`).test(title));
      expect(named).not.toEqual([]);
    },
  );
});

interface Planted {
  readonly rule: string;
  readonly path: string;
  readonly texts: readonly string[];
}

const WRONG: readonly Planted[] = [
  {
    rule: 'only the gate writes payment.state',
    path: 'src/submission/sweep.store.ts',
    texts: [
      `UPDATE payment SET state = 'failed' WHERE id = $1`,
      `update public.payment as p\n   set version = version + 1,\n       state='failed'\n where true`,
      `UPDATE "payment" SET (version, state) = (1, 'failed')`,
      `moveCtes({ candidates: 'c', from: [], guard: 'TRUE', set: ', state = c.to_state' })`,
    ],
  },
  {
    rule: 'only the store of payments creates one, and only with the gate it writes transitions',
    path: 'src/ops/fix.ts',
    texts: [`INSERT INTO payment (id) VALUES ($1)`, `insert into payment_transition\n (payment_id) SELECT 1`],
  },
  {
    rule: 'the domain is told the time',
    path: 'src/domain/instant.ts',
    texts: ['new Date()', 'new Date(0)', 'const f = Date.now;', 'Math.random()', 'String(Date())'],
  },
  {
    rule: 'workflows and the domain reach for no global object',
    path: 'workflows/execute-payment.workflow.ts',
    texts: ['globalThis.process', 'process.env', `require('node:fs')`],
  },
  { rule: 'a file holds one idea', path: 'src/payments/long.ts', texts: ['x\n'.repeat(401)] },
  {
    rule: 'the project speaks of itself alone',
    path: 'README.md',
    texts: [
      'see /root/notes/a.md',
      'cd /home/someone/payments',
      'from registry.example.org',
      'fixes #12',
      '// TODO later',
    ],
  },
];

const RIGHT: readonly Planted[] = [
  {
    rule: 'only the gate writes payment.state',
    path: 'src/submission/sweep.store.ts',
    texts: [
      `UPDATE payment SET armed_by = $2 WHERE id = $1 AND state = 'scheduled'`,
      `UPDATE payment p SET last_woken_at = now() FROM due WHERE p.state = 'held'`,
      `UPDATE payment_state_note SET state = 'x'`,
      `UPDATE lane SET paused = true`,
    ],
  },
  {
    rule: 'the domain is told the time',
    path: 'src/domain/instant.ts',
    texts: ['updateDate(x)', '/** A Date would cut it to milliseconds. */'],
  },
  {
    rule: 'the project speaks of itself alone',
    path: 'README.md',
    texts: [
      'GET /v1/payments/',
      'color: #123456',
      'a /worker/ folder',
      'provider-registry.ts',
      '[a](#1-start)',
    ],
  },
];

const ruleOf = (name: string) => {
  const rule = TIDY_RULES.find((each) => each.name === name);
  if (!rule) throw new Error(`no rule ${name}`);
  return rule;
};

describe('each rule of tidiness', () => {
  it.each(WRONG)('reports what breaks it: $rule', ({ rule, path, texts }) => {
    for (const text of texts) expect(faultsIn(ruleOf(rule), [{ path, text }]), text).not.toEqual([]);
  });

  it.each(RIGHT)('lets stand what does not: $rule', ({ rule, path, texts }) => {
    for (const text of texts) expect(faultsIn(ruleOf(rule), [{ path, text }]), text).toEqual([]);
  });

  it('is planted above', () => {
    expect(WRONG.map((planted) => planted.rule)).toEqual(TIDY_RULES.map((rule) => rule.name));
  });
});
