import { execFile } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../src/dev/stack-settings.js';

/** Code that a rule must report, in a file of its own; with `mention` the message must hold that text. */
interface Planted {
  readonly rule: string;
  readonly file: string;
  readonly code: string;
  readonly mention?: string;
}
const plant = (rule: string, file: string, code: string): Planted => ({ rule, file, code });

const NODE_GLOBALS = [
  'process',
  'Buffer',
  'fetch',
  'crypto',
  'performance',
  'console',
  'setInterval',
  'setImmediate',
  'globalThis',
  'global',
];
const globalsIn = (folder: string, names: readonly string[]): readonly Planted[] =>
  names.map((name) => ({
    rule: 'no-restricted-globals',
    file: `${folder}/global-${name}.ts`,
    code: `export const used: unknown = ${name};`,
    mention: `'${name}'`,
  }));

const PROMISE = 'export const later = async (): Promise<number> => 1;';
const UNTYPED = 'const untyped = JSON.parse("1");';

const VIOLATIONS: readonly Planted[] = [
  plant('typescript/no-floating-promises', 'src/payments/a.ts', `${PROMISE} later();`),
  plant('typescript/no-misused-promises', 'src/payments/b.ts', `${PROMISE} [1].forEach(later);`),
  plant(
    'typescript/switch-exhaustiveness-check',
    'src/payments/c.ts',
    `export function word(of: 'a' | 'b' | 'c'): string {
       switch (of) { case 'a': return 'first'; default: return 'another'; }
     }`,
  ),
  plant(
    'typescript/only-throw-error',
    'src/payments/d.ts',
    'export function end(): never { throw "a word"; }',
  ),
  plant(
    'typescript/prefer-promise-reject-errors',
    'src/payments/e.ts',
    'export const refused = Promise.reject("a word").catch(() => 1);',
  ),
  plant('typescript/no-explicit-any', 'src/payments/f.ts', 'export const loose = (x: any): unknown => x;'),
  plant(
    'typescript/no-deprecated',
    'src/payments/g.ts',
    '/** @deprecated use another */ const old = 1; export const used = old;',
  ),
  plant(
    'eqeqeq',
    'src/payments/h.ts',
    'export const same = (a: number | string, b: number): boolean => a == b;',
  ),
  plant('no-console', 'src/payments/i.ts', 'console.log("a payment");'),
  plant('node/no-process-env', 'src/payments/j.ts', 'export const home = process.env.HOME;'),
  plant(
    'typescript/no-misused-spread',
    'src/payments/k.ts',
    'export const joined = (a: readonly number[]): object => ({ ...a });',
  ),
  plant(
    'no-restricted-imports',
    'src/persistence/a.ts',
    "import { VersionColumn } from 'typeorm'; export const used: unknown = VersionColumn;",
  ),
  plant(
    'no-restricted-imports',
    'workflows/a.ts',
    "import { proxyLocalActivities } from '@temporalio/workflow'; export const used: unknown = proxyLocalActivities;",
  ),
  plant(
    'no-restricted-imports',
    'src/payments/l.ts',
    "import { Headers } from '@nestjs/common'; export const used: unknown = Headers;",
  ),
  plant(
    'typescript/no-unsafe-argument',
    'src/payments/m.ts',
    `${UNTYPED} export const n = Math.abs(untyped);`,
  ),
  plant('typescript/no-unsafe-assignment', 'workflows/b.ts', `export ${UNTYPED}`),
  plant('typescript/no-unsafe-call', 'activities/a.ts', `${UNTYPED} untyped();`),
  plant(
    'typescript/no-unsafe-member-access',
    'src/payments/n.ts',
    `${UNTYPED} export const n: unknown = untyped.x;`,
  ),
  plant(
    'typescript/no-unsafe-return',
    'src/payments/o.ts',
    'export const parsed = (): number => JSON.parse("1");',
  ),
  ...globalsIn('workflows', [...NODE_GLOBALS, 'WeakRef', 'FinalizationRegistry']),
  ...globalsIn('src/domain', [...NODE_GLOBALS, 'Date', 'setTimeout']),
  plant('no-restricted-globals', 'src/domain/a.ts', 'export const now = (): Date => new Date();'),
  plant('no-restricted-properties', 'src/domain/b.ts', 'export const chance = (): number => Math.random();'),
  ...['workflows', 'src/domain'].flatMap((folder) => [
    plant(
      'typescript/consistent-type-imports',
      `${folder}/c.ts`,
      "import { Shape } from './shape.js'; export type Used = Shape;",
    ),
    plant(
      'typescript/no-import-type-side-effects',
      `${folder}/d.ts`,
      "import { type Shape } from './shape.js'; export type Used = Shape;",
    ),
  ]),
  plant('no-unused-vars', 'src/payments/p.ts', 'const forgotten = 1; export {};'),
  plant(
    'typescript/require-array-sort-compare',
    'src/payments/q.ts',
    'export const sorted = (a: number[]): number[] => a.sort();',
  ),
];

/** What is allowed where it stands. */
const LAWFUL: readonly (readonly [file: string, code: string])[] = [
  ['workflows/now.ts', 'export const chance = (): number => Date.now() * Math.random();'],
  ['src/payments/now.ts', 'export const now = (): Date => new Date();'],
  ['src/main-api.ts', 'export const home = process.env.HOME;'],
  ['src/payments/absent.ts', 'export const absent = (a: number | null | undefined): boolean => a == null;'],
  ['src/payments/points.ts', 'export const points = (text: string): readonly string[] => [...text];'],
  ['src/payments/arguments.ts', "export const words = [...['--port', '1'], ...['--host', 'a']];"],
  [
    'src/payments/decided.ts',
    `export function word(of: 'a' | 'b'): string {
       switch (of) { case 'a': return 'first'; case 'b': return 'second'; }
     }`,
  ],
  ['src/payments/injected.ts', "import { Shape } from './shape.js'; export type Used = Shape;"],
];

const root = projectRoot();
const FOLDERS = ['src', 'workflows', 'activities'];

interface Finding {
  readonly code?: string;
  readonly filename: string;
  readonly message: string;
}

function plantTree(folder: string): void {
  for (const name of ['.oxlintrc.json', 'tsconfig.json']) copyFileSync(join(root, name), join(folder, name));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  // Without it the linter would walk through the link.
  writeFileSync(join(folder, '.gitignore'), 'node_modules\n');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const shapes = ['workflows', 'src/domain', 'src/payments'].map(
    (name) => [`${name}/shape.ts`, 'export type Shape = number;'] as const,
  );
  const planted = VIOLATIONS.map(({ file, code }) => [file, code] as const);
  for (const [file, code] of [...planted, ...LAWFUL, ...shapes]) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), code);
  }
}

async function lint(folder: string): Promise<readonly Finding[]> {
  const program = join(root, 'node_modules', '.bin', 'oxlint');
  const args = ['--type-aware', '--disable-nested-config', '--format', 'json', ...FOLDERS];
  const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
  // Findings are its exit code 1; they are on stdout all the same.
  const { stdout } = await promisify(execFile)(program, args, options).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  return (JSON.parse(stdout) as { diagnostics: readonly Finding[] }).diagnostics;
}

/** `typescript(no-deprecated)` is `typescript/no-deprecated` in the configuration; `eslint` goes without. */
const ruleOf = (finding: Finding): string =>
  (finding.code ?? '').replace(/^(\w+)\((.*)\)$/, '$1/$2').replace(/^eslint\//, '');

/** Names of the rules that the configuration sets to error, its comments taken out. */
function configuredRules(): readonly string[] {
  const text = readFileSync(join(root, '.oxlintrc.json'), 'utf8').replace(/^\s*\/\/.*$/gm, '');
  interface Part {
    readonly rules: Readonly<Record<string, unknown>>;
  }
  const config = JSON.parse(text) as Part & { readonly overrides: readonly Part[] };
  const entries = [config, ...config.overrides].flatMap(({ rules }) => Object.entries(rules));
  return [...new Set(entries.filter(([, level]) => level !== 'off').map(([name]) => name))].sort();
}

describe('lint rules', () => {
  let folder: string;
  let findings: readonly Finding[];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'payments-lint-'));
    plantTree(folder);
    findings = await lint(folder);
  }, 120_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(VIOLATIONS)('$rule reports $file', ({ rule, file, mention }) => {
    const found = findings.filter((finding) => finding.filename === file && ruleOf(finding) === rule);
    expect(found.map(({ message }) => message)).toEqual([expect.stringContaining(mention ?? '')]);
  });

  it.each(LAWFUL)('nothing is reported of %s', (file) => {
    expect(findings.filter((finding) => finding.filename === file)).toEqual([]);
  });

  it('every rule that the configuration names has a planted violation', () => {
    const planted = new Set(VIOLATIONS.map(({ rule }) => rule));
    expect(configuredRules().filter((rule) => !planted.has(rule))).toEqual([]);
  });
});
