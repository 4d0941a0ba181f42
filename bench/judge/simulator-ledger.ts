/** Where a simulator's control port is, and the token it wants. */
export interface ControlAddress {
  readonly url: string;
  readonly token: string;
}

/** Everything the simulated provider knows that judges a run. */
export interface ProviderView {
  /** First arrival of the request that moved the money, by payment id: epoch ms, with microseconds. */
  readonly firstArrival: ReadonlyMap<string, number>;
  /** Payments that were paid more than once. */
  readonly duplicates: readonly string[];
  /** Payments whose money moved before the registered time. */
  readonly early: readonly string[];
}

const CALL_WITHIN_MS = 30_000;

/**
 * The simulated provider's own ledger: the judge of "once" and "never early". What the product's
 * tables say does not count here.
 */
export class SimulatorLedger {
  constructor(private readonly control: ControlAddress) {}

  /** Registers the times (epoch ms) before which payments must not be paid. Twice: the newer counts. */
  async expect(times: ReadonlyMap<string, number>): Promise<void> {
    await this.#call('POST', '/expect', Object.fromEntries(times));
  }

  /** Makes every submission answer so many ms late; the money still moves when the request arrives. */
  async answerLate(afterMs: number): Promise<void> {
    const slow = { kind: 'slow', afterMs, times: 'always' };
    await this.#call('POST', '/plan', { scripts: [{ reference: '*', submit: [slow] }] });
  }

  /** Executes every submission and says nothing of it: the connection is cut, and no lookup tells either. */
  async stayUnknown(): Promise<void> {
    const lookup = [{ kind: 'lookup_500', times: 'always' }];
    await this.#call('POST', '/plan', {
      scripts: [{ reference: '*', submit: [{ kind: 'reset_after', times: 'always' }], lookup }],
    });
  }

  /** Answers every submission with 429 and this Retry-After; nothing is executed. */
  async throttle(retryAfterS: number): Promise<void> {
    const busy = { kind: 'http_429', retryAfter: retryAfterS, times: 'always' };
    await this.#call('POST', '/plan', { scripts: [{ reference: '*', submit: [busy] }] });
  }

  /** Requests of one kind that arrived so far; a restart counts anew. */
  async requests(operation: 'submit' | 'lookup'): Promise<number> {
    const { requests } = (await this.#call('GET', '/requests')) as {
      requests: { operation: string | null }[];
    };
    return requests.filter((request) => request.operation === operation).length;
  }

  /** How many payments were paid so far. */
  async paid(): Promise<number> {
    return (await this.#effects()).payments;
  }

  async read(): Promise<ProviderView> {
    const effects = await this.#effects();
    const early = (await this.#call('GET', '/early')) as { charges: { reference: string }[] };
    const column = (name: string): number => effects.columns.indexOf(name);
    const [reference, receivedAt] = [column('reference'), column('receivedAt')];
    const firstArrival = new Map<string, number>();
    for (const row of effects.rows) {
      const id = paymentIdOf(String(row[reference]));
      const at = Number(row[receivedAt]);
      firstArrival.set(id, Math.min(at, firstArrival.get(id) ?? Infinity));
    }
    return {
      firstArrival,
      duplicates: effects.duplicates.map((duplicate) => duplicate.paymentId),
      early: early.charges.map((charge) => paymentIdOf(charge.reference)),
    };
  }

  async #effects(): Promise<Effects> {
    return (await this.#call('GET', '/effects')) as Effects;
  }

  async #call(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.control.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.control.token}` },
      signal: AbortSignal.timeout(CALL_WITHIN_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const content = (await response.json()) as { error?: string };
    if (!response.ok) throw new Error(`The simulator refused ${method} ${path}: ${content.error}`);
    return content;
  }
}

interface Effects {
  readonly payments: number;
  readonly duplicates: readonly { readonly paymentId: string }[];
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

/** The provider knows a payment as `<payment id>/<generation>`. */
function paymentIdOf(reference: string): string {
  return reference.split('/')[0] ?? reference;
}
