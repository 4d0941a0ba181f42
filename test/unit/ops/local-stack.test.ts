import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serviceEnvironment } from '../../../src/ops/environment.js';
import { CommandFailure, type Terminal } from '../../../src/ops/terminal.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'payments-local-stack-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function terminal(env: NodeJS.ProcessEnv): Terminal {
  const nothing = (): void => undefined;
  return {
    env: { PAYMENTS_LOCAL_DIR: folder, ...env },
    folder,
    isInteractive: false,
    out: nothing,
    err: nothing,
  };
}

function stack(state: 'running' | 'stopped'): void {
  const content = {
    state,
    api_url: 'http://127.0.0.1:1',
    api_keys: { client: 'c' },
    environment: { PAYMENTS_DATABASE_URL: 'postgres://local/payments', PAYMENTS_MODE: 'development' },
  };
  writeFileSync(join(folder, 'stack.json'), JSON.stringify(content));
}

describe('the settings of commands on the service', () => {
  it('come from the local stack when the environment names no database', () => {
    stack('running');
    expect(serviceEnvironment(terminal({}))['PAYMENTS_DATABASE_URL']).toBe('postgres://local/payments');
  });

  it.each([
    'PAYMENTS_DATABASE_URL',
    'PAYMENTS_OWNER_DATABASE_URL',
    'PAYMENTS_ADMIN_DATABASE_URL',
    'PAYMENTS_AUDITOR_DATABASE_URL_FILE',
  ])('come from the environment alone when it sets %s, whatever stack runs', (name) => {
    stack('running');
    const named = { [name]: 'postgres://elsewhere/payments' };
    const env = serviceEnvironment(terminal(named));
    expect(env).toMatchObject(named);
    expect(env['PAYMENTS_MODE']).toBeUndefined();
    expect(Object.values(env)).not.toContain('postgres://local/payments');
  });

  it('are not guessed from a stack that is stopped', () => {
    stack('stopped');
    expect(() => serviceEnvironment(terminal({}))).toThrow(CommandFailure);
  });
});
