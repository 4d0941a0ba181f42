import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../../../src/dev/stack-settings.js';

const read = (name: string) => readFileSync(join(projectRoot(), name), 'utf8');
const names = (text: string, pattern: RegExp) =>
  new Set([...text.matchAll(pattern)].map((match) => match[1]));

describe('.env.example', () => {
  it('names every setting that the processes read, and no other', () => {
    const [processes = '', localStack = ''] = read('.env.example').split('# --- Settings of the local stack');
    const documented = names(processes, /^#? ?(PAYMENTS_[A-Z_]+)=/gm);
    const settings = read('src/config/config.ts') + read('src/config/stripe-settings.ts');
    expect(documented).toEqual(names(settings, /^ {2}(PAYMENTS_[A-Z_]+):/gm));
    expect(names(localStack, /^# ((?:PAYMENTS|TEMPORAL)_[A-Z_]+)=/gm)).toEqual(
      new Set(['PAYMENTS_PORT_BASE', 'PAYMENTS_LOCAL_DIR', 'PAYMENTS_CACHE_DIR', 'TEMPORAL_ADDRESS']),
    );
  });
});
