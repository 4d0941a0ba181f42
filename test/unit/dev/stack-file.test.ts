import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { portsFrom } from '../../../src/dev/ports.js';
import { describeStack, markStopped, readStackFile, writeStackFile } from '../../../src/dev/stack-file.js';
import { projectRoot, readStackSettings } from '../../../src/dev/stack-settings.js';
import { temporaryFolder } from './temporary-folder.js';

const counts = { apis: 2, workers: 1 };
const running = describeStack({
  ports: portsFrom(readStackSettings(projectRoot()), 7300, counts),
  counts,
  temporal: { address: '127.0.0.1:7330', namespace: 'default', isOurs: true },
  postgresUrl: 'postgres://o:p@127.0.0.1:7350/payments',
  simulatorControlToken: 'token',
  apiKeys: { client: 'c', client_readonly: 'r', other_tenant: 'o' },
  issuerKeyFile: 'issuer-key.json',
  environment: { PAYMENTS_MODE: 'development' },
  pids: [
    ['api', 11],
    ['worker', null],
  ],
});

describe('stack.json', () => {
  it('lists the processes that run and no others', () => {
    expect(running.pids).toEqual({ api: 11 });
    expect(running.api_urls).toEqual(['http://127.0.0.1:7300', 'http://127.0.0.1:7301']);
    expect(running.api_url).toBe(running.api_urls[0]);
  });

  it('names the people who can log in, no two of them one person', () => {
    expect(Object.keys(running.people)).toEqual(['operator-1', 'operator-2', 'approver-1', 'auditor-1']);
    const subjects = Object.values(running.people).map((person) => person.subject);
    expect(new Set(subjects).size).toBe(4);
  });

  it('names no Web UI for a Temporal server that is not ours', () => {
    const foreign = describeStack({
      ports: portsFrom(readStackSettings(projectRoot()), 7300, counts),
      counts,
      temporal: { address: 'temporal.example:7233', namespace: 'team', isOurs: false },
      postgresUrl: running.postgres_url,
      simulatorControlToken: 'token',
      apiKeys: running.api_keys,
      issuerKeyFile: running.issuer_key_file,
      environment: { PAYMENTS_MODE: 'development' },
      pids: [],
    });
    expect(foreign).toMatchObject({
      temporal_address: 'temporal.example:7233',
      temporal_namespace: 'team',
      temporal_ui_url: null,
    });
  });

  it('can be read by its owner alone', () => {
    const file = join(temporaryFolder(), 'stack.json');
    writeStackFile(file, running);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readStackFile(file)).toEqual(running);
  });

  it('says after a stop that nothing runs, and keeps addresses and keys', () => {
    const file = join(temporaryFolder(), 'stack.json');
    markStopped(file);
    expect(readStackFile(file)).toBeNull();
    writeStackFile(file, running);
    markStopped(file);
    expect(readStackFile(file)).toEqual({ ...running, state: 'stopped', supervisor_pid: null, pids: {} });
  });

  it('is refused with advice when it is damaged', () => {
    const file = join(temporaryFolder(), 'stack.json');
    writeFileSync(file, '{"state":');
    expect(() => readStackFile(file)).toThrow('is damaged');
  });
});
