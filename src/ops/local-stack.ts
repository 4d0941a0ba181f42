import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { CommandFailure, type Terminal } from './terminal.js';

const StackFile = z.object({
  state: z.string(),
  api_url: z.string(),
  api_keys: z.object({ client: z.string() }),
  people: z
    .record(z.string(), z.object({ subject: z.string(), tenant: z.string(), roles: z.array(z.string()) }))
    .default({}),
  issuer_key_file: z.string().default(''),
  environment: z.record(z.string(), z.string()),
});

/** The checkout that this program belongs to: the nearest folder above with a package.json. */
function checkout(): string | null {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) return null;
    folder = parent;
  }
  return folder;
}

/** stack.json of the local stack: of PAYMENTS_LOCAL_DIR, else `.local` here, else in the checkout. */
function findStackFile(terminal: Terminal): string | null {
  const named = terminal.env['PAYMENTS_LOCAL_DIR'] || '.local';
  const starts = [terminal.folder, checkout()].filter((folder) => folder !== null);
  const files = starts.map((folder) => join(resolve(folder, named), 'stack.json'));
  return files.find((file) => existsSync(file)) ?? null;
}

export type LocalStackFile = z.infer<typeof StackFile>;

/**
 * What `npm start` wrote down of the stack that it runs, or null when there is none.
 * @throws CommandFailure with exit code 2 when it is stopped or another program's file.
 */
export function readLocalStack(terminal: Terminal): LocalStackFile | null {
  const file = findStackFile(terminal);
  if (file === null) return null;
  const parsed = StackFile.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!parsed.success)
    throw new CommandFailure(2, `${file} is not the file of a local stack. Run npm start.`);
  if (parsed.data.state !== 'running') {
    throw new CommandFailure(2, 'The local stack is stopped. Run npm start, or name what to ask (--help).');
  }
  return parsed.data;
}
