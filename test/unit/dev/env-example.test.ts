import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../../../src/dev/stack-settings.js';

const read = (name: string) => readFileSync(join(projectRoot(), name), 'utf8');
const names = (text: string, pattern: RegExp) =>
  new Set([...text.matchAll(pattern)].map((match) => match[1]));

/** What only commands read. */
const OF_COMMANDS = [
  'PAYMENTS_ADMIN_DATABASE_URL',
  'PAYMENTS_AUDITOR_DATABASE_URL',
  'PAYMENTS_OWNER_DATABASE_URL',
  'PAYMENTS_ANCHOR_PUBLIC_KEYS_FILE',
];

describe('.env.example', () => {
  it('names every setting that the processes read, and no other', () => {
    const [processes = '', localStack = ''] = read('.env.example').split('# --- Settings of the local stack');
    const documented = names(processes, /^#? ?(PAYMENTS_[A-Z_]+)=/gm);
    const files = readdirSync(join(projectRoot(), 'src/config')).filter((file) => file.endsWith('.ts'));
    const settings = files.map((file) => read(`src/config/${file}`)).join('\n');
    const known = names(settings, /^ {2}(PAYMENTS_[A-Z_]+):/gm);
    for (const name of OF_COMMANDS) known.add(name);
    expect(documented).toEqual(known);
    expect(names(localStack, /^# ((?:PAYMENTS|TEMPORAL)_[A-Z_]+)=/gm)).toEqual(
      new Set(['PAYMENTS_PORT_BASE', 'PAYMENTS_LOCAL_DIR', 'PAYMENTS_CACHE_DIR', 'TEMPORAL_ADDRESS']),
    );
  });
});
