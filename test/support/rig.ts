import { Agent, request } from 'undici';
import pg from 'pg';
import { expect } from 'vitest';
import { findBreaches } from './invariants.js';
import { SimulatorControl } from './simulator-control.js';
import { startStack, type TemporaryStack, type TemporaryStackOptions } from './stack.js';

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A running stack with a client, the database and the provider's ledger: what an end-to-end test needs. */
export class Rig {
  readonly provider: SimulatorControl;
  private readonly agent = new Agent({ connections: 20 });
  private keys = 0;

  private constructor(
    readonly stack: TemporaryStack,
    private readonly db: pg.Pool,
  ) {
    this.provider = new SimulatorControl(() => ({
      controlUrl: stack.simulator_control_url,
      controlToken: stack.simulator_control_token,
    }));
  }

  static async start(options: TemporaryStackOptions = {}): Promise<Rig> {
    const stack = await startStack(options);
    const db = new pg.Pool({ connectionString: stack.postgres_url, max: 3 });
    db.on('error', () => undefined);
    return new Rig(stack, db);
  }

  async stop(): Promise<void> {
    await this.agent.close();
    await this.db.end();
    await this.stack.stop();
  }

  async sql<R extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<R[]> {
    return (await this.db.query<R>(text, values)).rows;
  }

  /** One call of the API. @throws only when no answer came. */
  async call(
    method: 'GET' | 'POST',
    path: string,
    options: {
      body?: unknown;
      headers?: Record<string, string>;
      api?: number;
      key?: keyof TemporaryStack['api_keys'];
    } = {},
  ): Promise<Answer> {
    const base = this.stack.api_urls[options.api ?? 0] ?? this.stack.api_url;
    const answer = await request(`${base}${path}`, {
      method,
      dispatcher: this.agent,
      headers: {
        authorization: `Bearer ${this.stack.api_keys[options.key ?? 'client']}`,
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    });
    const text = await answer.body.text();
    return {
      status: answer.statusCode,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    };
  }

  /** The next whole second that is at least `ms` away: epoch ms. */
  secondAfter(ms: number): number {
    return Math.ceil((Date.now() + ms) / 1_000) * 1_000;
  }

  /** Creates a payment due at `dueMs` (epoch ms), registers its time with the provider. @returns its id. */
  async schedule(dueMs: number, more: Record<string, unknown> = {}): Promise<string> {
    const [id] = await this.scheduleMany(1, dueMs, more);
    return id as string;
  }

  /** Creates `count` payments of one due time, over all APIs. @returns their ids. */
  async scheduleMany(count: number, dueMs: number, more: Record<string, unknown> = {}): Promise<string[]> {
    const ids: string[] = [];
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < count) {
        const n = next++;
        const answer = await this.call('POST', '/v1/payments', {
          api: n % this.stack.api_urls.length,
          headers: { 'idempotency-key': `rig-${this.keys++}` },
          body: {
            amount: 100 + n,
            currency: 'EUR',
            destination: `acct_${n}`,
            execute_at: new Date(dueMs).toISOString(),
            ...more,
          },
        });
        expect(answer).toMatchObject({ status: 201 });
        ids.push(answer.body['id'] as string);
      }
    };
    await Promise.all(Array.from({ length: 20 }, client));
    await this.provider.expect(Object.fromEntries(ids.map((id) => [id, dueMs])));
    return ids;
  }

  async cancel(id: string): Promise<Answer> {
    return this.call('POST', `/v1/payments/${id}/cancel`);
  }

  /** Resolves at `dueMs + offsetMs`. */
  async at(dueMs: number, offsetMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs + offsetMs - Date.now())));
  }

  /** How many of these payments stand in which state. */
  async states(ids: readonly string[]): Promise<Record<string, number>> {
    const rows = await this.sql<{ state: string; n: number }>(
      'SELECT state, count(*)::int AS n FROM payment WHERE id = ANY ($1) GROUP BY state',
      [ids],
    );
    return Object.fromEntries(rows.map((r) => [r.state, r.n]));
  }

  /** Waits until `fulfilled` is true, asking every 100 ms; outages while asking are waited out. */
  async until(what: string, fulfilled: () => Promise<boolean>, withinMs = 120_000): Promise<void> {
    const deadline = Date.now() + withinMs;
    for (;;) {
      const done = await fulfilled().catch(() => false);
      if (done) return;
      if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Waits until all of these payments are final. @returns ms after `dueMs` at which they were. */
  async untilFinal(ids: readonly string[], dueMs: number, withinMs = 120_000): Promise<number> {
    const open = `SELECT count(*)::int AS n FROM payment WHERE id = ANY ($1)
      AND state IN ('scheduled', 'held', 'submitting', 'submitted', 'unknown', 'needs_review')`;
    await this.until(`${ids.length} payments are final: ${JSON.stringify(await this.states(ids))}`, async () => {
      const [row] = await this.sql<{ n: number }>(open, [ids]);
      return row?.n === 0;
    }, withinMs); // prettier-ignore
    return Date.now() - dueMs;
  }

  /**
   * The judge: of `paid` one charge each, of `unpaid` none; nothing early; the amounts as instructed;
   * no invariant broken, by the judge written apart from the product's own.
   */
  async judge(paid: readonly string[], unpaid: readonly string[] = []): Promise<void> {
    const charges = new Map<string, number>();
    for (const charge of (await this.provider.allEffects()).charges) {
      const id = charge.reference.split('/')[0] ?? '';
      charges.set(id, (charges.get(id) ?? 0) + 1);
    }
    expect(paid.filter((id) => charges.get(id) !== 1).map((id) => [id, charges.get(id) ?? 0])).toEqual([]);
    expect(unpaid.filter((id) => charges.has(id))).toEqual([]);
    expect((await this.provider.early()).charges).toEqual([]);
    const breaches = await findBreaches(<R>(text: string) => this.sql<R & pg.QueryResultRow>(text));
    expect(breaches).toEqual([]);
  }
}
