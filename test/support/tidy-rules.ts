import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

/** One file of the project. */
export interface ProjectFile {
  /** From the project's folder, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** Looks at one file and names what is wrong with it. */
export interface TidyRule {
  readonly name: string;
  readonly applies: (path: string) => boolean;
  readonly faults: (file: ProjectFile) => readonly string[];
}

const SKIPPED = new Set(['node_modules', 'dist', 'coverage', '.git', '.local', 'package-lock.json']);
const TEXT = /\.(?:ts|mjs|cjs|js|json|md|yaml|yml|sql|html|css|txt)$|^\.[a-z]+(?:rc|\.example)?$/;
const LARGEST_BYTES = 1_000_000;

/** Every text file below the folder, without what is installed, built or local. */
export function projectFiles(root: string, folder = root): readonly ProjectFile[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (SKIPPED.has(entry.name)) return [];
    const full = join(folder, entry.name);
    if (entry.isDirectory()) return projectFiles(root, full);
    if (!entry.isFile() || !TEXT.test(entry.name) || statSync(full).size > LARGEST_BYTES) return [];
    return [{ path: relative(root, full).replaceAll('\\', '/'), text: readFileSync(full, 'utf8') }];
  });
}

const isSource = (path: string): boolean => /^(?:src|workflows|activities|bench|scripts)\//.test(path);
const matches = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map((m) => m[0]);
const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 80);

/** The assignments of each UPDATE of `payment`: from SET to what ends them. */
const UPDATE_PAYMENT =
  /\bUPDATE\s+(?:ONLY\s+)?(?:"?public"?\s*\.\s*)?"?payment"?(?:\s+(?:AS\s+)?(?!SET\b)\w+)?\s+SET\b([\s\S]*?)(?=\bWHERE\b|\bFROM\b|\bRETURNING\b|`|;|$)/gi;
const ASSIGNS_STATE = /(?:^|[\s,])"?state"?\s*=|\([^)]*\bstate\b[^)]*\)\s*=/i;
/** What a caller of the batch form adds to its assignments. */
const SET_OF_MOVE = /\bset:\s*(['"`])([\s\S]*?)\1/g;

/** The gate alone moves a payment; a second writer would have no transition, no guard and no hash. */
const ONLY_THE_GATE: TidyRule = {
  name: 'only the gate writes payment.state',
  applies: (path) => isSource(path) && path !== 'src/payments/gate.ts',
  faults: ({ text }) => [
    ...[...text.matchAll(UPDATE_PAYMENT)]
      .filter((m) => ASSIGNS_STATE.test(m[1] ?? ''))
      .map((m) => oneLine(m[0])),
    ...[...text.matchAll(SET_OF_MOVE)]
      .filter((m) => ASSIGNS_STATE.test(m[2] ?? ''))
      .map((m) => oneLine(m[0])),
  ],
};

/** The bench writes a million payments of the past straight into the tables of its own stack. */
const WRITERS_OF_HISTORY = [
  'src/payments/gate.ts',
  'src/payments/payment.store.ts',
  'bench/load/history-load.ts',
  'bench/load/settlement-load.ts',
];

const ONE_INSERT: TidyRule = {
  name: 'only the store of payments creates one, and only with the gate it writes transitions',
  applies: (path) => isSource(path) && !WRITERS_OF_HISTORY.includes(path),
  faults: ({ text }) => matches(text, /\bINSERT\s+INTO\s+"?payment(?:_transition)?"?\s*\(/gi).map(oneLine),
};

/** Lint does not see these two ways to the clock and to Node. */
const NO_CLOCK_IN_DOMAIN: TidyRule = {
  name: 'the domain is told the time',
  applies: (path) => path.startsWith('src/domain/'),
  faults: ({ text }) =>
    matches(text, /\bnew\s+Date\b|\bDate\s*\(|\bDate\.now\b|\bperformance\.now\b|\bMath\.random\b/g),
};

const NO_GLOBALS_IN_WORKFLOWS: TidyRule = {
  name: 'workflows and the domain reach for no global object',
  applies: (path) => /^(?:workflows|src\/domain)\//.test(path),
  faults: ({ text }) => matches(text, /\bglobalThis\b|\bglobal\.\w+|\bprocess\.\w+|\brequire\s*\(/g),
};

const SOURCE_LINES = 400;
const TEST_LINES = 600;
const SHORT_FILES: TidyRule = {
  name: 'a file holds one idea',
  applies: (path) => /\.(?:ts|mjs)$/.test(path),
  faults: ({ path, text }) => {
    const lines = text.split('\n').length - 1;
    const most = path.startsWith('test/') ? TEST_LINES : SOURCE_LINES;
    return lines > most ? [`${lines} lines, at most ${most}`] : [];
  },
};

/** The project makes sense alone: no path of one machine, no place where packages come from, no issue number. */
const STANDS_ALONE: TidyRule = {
  name: 'the project speaks of itself alone',
  applies: (path) => !['test/support/tidy-rules.ts', 'test/unit/tidy.test.ts'].includes(path),
  faults: ({ text }) => [
    ...matches(text, /(?<![\w.:/-])\/(?:root|home\/\w+|Users\/\w+)\/[\w./-]*/g),
    ...matches(text, /\b(?:registry|proxy|files|index)\.[a-z-]+\.(?:org|com|io|net)\b/g),
    ...matches(text, /(?<![\w&'"`#/])#\d{1,5}\b(?![\w-])/g),
    ...matches(text, /\b(?:TODO|FIXME|XXX_|HACK)\b/g),
  ],
};

export const TIDY_RULES: readonly TidyRule[] = [
  ONLY_THE_GATE,
  ONE_INSERT,
  NO_CLOCK_IN_DOMAIN,
  NO_GLOBALS_IN_WORKFLOWS,
  SHORT_FILES,
  STANDS_ALONE,
];

/** What the rule finds in these files, as `path: fault`. */
export function faultsIn(rule: TidyRule, files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => rule.applies(file.path))
    .flatMap((file) => rule.faults(file).map((fault) => `${file.path}: ${fault}`));
}

const TITLE =
  /\b(?:it|test|describe)(?:\.\w+(?:\([^)]*\))?)*\s*\(\s*(['"`])((?:\\.|(?!\1)[\s\S])*)\1|\btitle:\s*(['"`])((?:\\.|(?!\3)[\s\S])*)\3/g;

/** Every title of the tests, and titles kept in tables of cases. */
export function testTitles(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => file.path.endsWith('.test.ts'))
    .flatMap((file) => [...file.text.matchAll(TITLE)].map((m) => m[2] ?? m[4] ?? ''));
}
