import { Pool } from 'undici';

/** As many creates at once as the load of the `creates` scenario uses. */
const CONNECTIONS = 20;
const ANSWER_WITHIN_MS = 30_000;

/** One payment that the API accepted. */
export interface CreatedPayment {
  readonly id: string;
  /** Epoch ms; the same instant as its `execute_at`. */
  readonly dueAt: number;
}

/**
 * Creates payments through the API as a client does: its own idempotency key for each, a bearer
 * key, connections that stay open. Nothing is repeated: an answer other than 201 ends the run.
 */
export class PaymentCreator {
  readonly #pool: Pool;
  #next = 0;

  /** @param prefix makes the idempotency keys of this creator unique in its stack. */
  constructor(
    url: string,
    private readonly apiKey: string,
    private readonly prefix: string,
  ) {
    this.#pool = new Pool(url, {
      connections: CONNECTIONS,
      pipelining: 1,
      headersTimeout: ANSWER_WITHIN_MS,
      bodyTimeout: ANSWER_WITHIN_MS,
    });
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  /** @throws Error with status and problem code when the API does not accept it. */
  async create(dueAt: number): Promise<CreatedPayment> {
    const number = this.#next++;
    const { statusCode, body } = await this.#pool.request({
      method: 'POST',
      path: '/v1/payments',
      headers: createHeaders(this.apiKey, `${this.prefix}-${number}`),
      body: createBody(dueAt, number),
    });
    const content = (await body.json()) as { id?: string; code?: string };
    if (statusCode !== 201 || content.id === undefined) {
      throw new Error(`A create was answered ${statusCode} ${content.code ?? ''}.`);
    }
    return { id: content.id, dueAt };
  }

  /** Creates many, twenty at a time, all due at one instant. @throws as `create`, at the first failure. */
  async createAll(count: number, dueAt: number, signal: AbortSignal): Promise<CreatedPayment[]> {
    const created: CreatedPayment[] = [];
    let left = count;
    const worker = async (): Promise<void> => {
      while (left > 0) {
        signal.throwIfAborted();
        left--;
        created.push(await this.create(dueAt));
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONNECTIONS, count) }, worker));
    return created;
  }
}

export function createHeaders(apiKey: string, idempotencyKey: string): Record<string, string> {
  return {
    authorization: `Bearer ${apiKey}`,
    'idempotency-key': idempotencyKey,
    'content-type': 'application/json',
  };
}

/** The body of one create; destinations repeat every thousand payments, as payees do. */
export function createBody(dueAt: number, number: number): string {
  return JSON.stringify({
    amount: 1_999,
    currency: 'EUR',
    destination: `acct_bench${number % 1_000}`,
    execute_at: new Date(dueAt).toISOString(),
    reference: `bench-${number}`,
  });
}
