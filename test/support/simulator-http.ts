import { Agent, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSimulatorSettings } from '../../src/simulator/settings.js';
import { startSimulator } from '../../src/simulator/simulator.js';
import type { RunningSimulator } from '../../src/simulator/simulator.js';
import { SimulatorControl } from './simulator-control.js';

/** A simulator inside the test's own process, over HTTP, with a client that keeps no connection. */

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Sent {
  readonly method?: 'GET' | 'POST';
  readonly path?: string;
  readonly key?: string;
  readonly bearer?: string;
  /** A text goes out as it is, anything else as JSON. Default: `BODY`. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

export const TOKEN = 'control-token';
export const BODY = { amount: 1250, currency: 'EUR', destination: 'acct_dest', reference: 'pay_a/1' };

export class HttpSimulator extends SimulatorControl {
  private running: RunningSimulator | null = null;
  private readonly agent = new Agent({ keepAlive: false });
  private readonly folder = mkdtempSync(join(tmpdir(), 'simulator-'));

  constructor(private readonly env: Readonly<Record<string, string>> = {}) {
    super(() => ({ controlUrl: this.controlUrl, controlToken: TOKEN }));
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<HttpSimulator> {
    const simulator = new HttpSimulator(env);
    await simulator.open();
    return simulator;
  }

  get controlUrl(): string {
    return `http://127.0.0.1:${this.running?.controlPort}`;
  }

  get url(): string {
    return `http://127.0.0.1:${this.running?.port}`;
  }

  /** Stops and starts on the same ledger, on other ports. */
  async restart(): Promise<void> {
    this.running?.stop();
    await this.open();
  }

  /** Ends the simulator and removes its ledger. */
  close(): void {
    this.running?.stop();
    this.agent.destroy();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** One request to the provider port. Rejects with the socket's error when the connection is cut. */
  send({
    method = 'POST',
    path = '/v1/payouts',
    key,
    bearer = 'sk_a',
    body,
    signal,
  }: Sent = {}): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        `${this.url}${path}`,
        {
          agent: this.agent,
          method,
          signal,
          headers: { authorization: `Bearer ${bearer}`, ...(key && { 'idempotency-key': key }) },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.on('error', reject);
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
          );
        },
      );
      request.on('error', reject);
      if (method === 'GET') request.end();
      else request.end(typeof body === 'string' ? body : JSON.stringify(body ?? BODY));
    });
  }

  list(reference = 'pay_a/1'): Promise<HttpAnswer> {
    return this.send({ method: 'GET', path: `/v1/payouts?reference=${encodeURIComponent(reference)}` });
  }

  /** Movements of the payment `pay_a` that did not fail. */
  async charged(): Promise<number> {
    return (await this.effects('pay_a')).count;
  }

  private async open(): Promise<void> {
    this.running = await startSimulator(
      readSimulatorSettings({
        SIMULATOR_PORT: '0',
        SIMULATOR_CONTROL_PORT: '0',
        SIMULATOR_CONTROL_TOKEN: TOKEN,
        SIMULATOR_LEDGER_FILE: join(this.folder, 'ledger.jsonl'),
        SIMULATOR_PROFILE_KEYS: 'sk_a:A,sk_b:B,sk_c:C,sk_d:D,sk_t:T,sk_a2:A',
        ...this.env,
      }),
    );
  }
}

export function objectIn({ body }: HttpAnswer): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}

export function listIn(answer: HttpAnswer): Record<string, unknown>[] {
  return objectIn(answer)['data'] as Record<string, unknown>[];
}

export function errorCode(answer: HttpAnswer): unknown {
  return (objectIn(answer)['error'] as Record<string, unknown>)['code'];
}
