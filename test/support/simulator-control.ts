/**
 * Speaks to a running simulator's control port. The types are written here anew: this file imports
 * nothing of the product, so that a mistake there cannot hide in its judge.
 */

export interface Charge {
  readonly reference: string;
  readonly payoutId: string;
  readonly key: string | null;
  readonly amount: number;
  readonly currency: string;
  readonly destination: string;
  /** Epoch milliseconds with microseconds, the simulator's wall clock. */
  readonly receivedAt: number;
  readonly status: string;
  /** The money came back later. It was moved all the same. */
  readonly returned: boolean;
}

export interface SeenRequest {
  readonly receivedAt: number;
  readonly operation: Exclude<Operation, 'webhook'> | null;
  readonly method: string;
  readonly path: string;
  readonly reference: string;
  readonly key: string | null;
  readonly fault: string;
  readonly httpStatus: number | null;
  readonly replayed: boolean;
}

export type Operation = 'submit' | 'commit' | 'lookup' | 'cancel' | 'webhook';
/** A fault's word, or an object with `kind`, `times` and the options of that kind. */
export type FaultInput =
  string | { readonly kind: string; readonly times?: number | 'always'; readonly [option: string]: unknown };
export interface Plan {
  /** `reference`: a payment id, a full reference, or `*` for every payment. */
  readonly scripts?: readonly ({ readonly reference: string } & {
    readonly [O in Operation]?: readonly FaultInput[];
  })[];
  readonly random?: {
    readonly seed: string | number;
    readonly rates: {
      readonly [O in Operation]?: readonly ({ readonly kind: string; readonly rate: number } & Record<
        string,
        unknown
      >)[];
    };
  } | null;
  /** Drop everything that was planned before. */
  readonly replace?: boolean;
}

export interface AllEffects {
  /** Movements that did not fail. */
  readonly count: number;
  readonly payments: number;
  /** Payments that were paid more than once. */
  readonly duplicates: readonly { readonly paymentId: string; readonly count: number }[];
  readonly charges: readonly Charge[];
}

/** What an account's provider promises less than usual; what is absent stays as it is. */
export interface AccountSwitches {
  /** Milliseconds of the virtual clock. */
  readonly keyLifeMs?: number;
  readonly lookupLagMs?: number;
  readonly keyScope?: 'account' | 'api_key';
  readonly errorReplay?: 'stored' | 'forgotten' | 're_executed';
}

/** Where an account's events go; `url: null`: nowhere. Default scheme: `simulated`. */
export interface WebhookInput {
  readonly account: string;
  readonly url: string | null;
  readonly secrets?: readonly string[];
  readonly scheme?: 'simulated' | 'stripe' | 'standard';
}

export interface Delivery {
  readonly eventId: string;
  readonly type: string;
  readonly account: string;
  readonly reference: string;
  readonly fault: string;
  /** Not the event itself but what a fault put before it. */
  readonly stray: boolean;
  /** From 1; 0: dropped. */
  readonly attempt: number;
  readonly sentAt: number;
  readonly httpStatus: number | null;
  readonly error: string | null;
}

/** Which part of an account's settlement, in which form, and how many errors to put in. */
export interface SettlementQuery {
  readonly account: string;
  /** RFC 3339 or epoch ms of the virtual clock: booked from (inclusive) to (exclusive). */
  readonly from?: string;
  readonly to?: string;
  readonly format?: 'csv' | 'camt053';
  /** `<seed>:<count>`. */
  readonly errors?: string;
}

export interface InjectedError {
  readonly error: string;
  readonly reference: string;
  readonly source_id: string;
  readonly txn_id: string;
}

/** Where a simulator's control port is, and the token it wants. */
export interface ControlAddress {
  readonly controlUrl: string;
  readonly controlToken: string;
}

export class SimulatorControl {
  constructor(protected readonly address: () => ControlAddress) {}

  /** Movements of money of one payment, over all generations; `count` without the failed ones. */
  async effects(paymentId: string): Promise<{ readonly count: number; readonly charges: readonly Charge[] }> {
    return (await this.control('GET', `/effects?reference=${encodeURIComponent(paymentId)}`)) as {
      count: number;
      charges: Charge[];
    };
  }

  async allEffects(): Promise<AllEffects> {
    const answer = (await this.control('GET', '/effects')) as Omit<AllEffects, 'charges'> & {
      columns: string[];
      rows: unknown[][];
    };
    const { columns, rows, ...rest } = answer;
    const charges = rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])));
    return { ...rest, charges: charges as unknown as Charge[] };
  }

  /** Registers the time, before which a payment must not be charged: ISO text or epoch ms. */
  async expect(times: Readonly<Record<string, string | number>>): Promise<void> {
    await this.control('POST', '/expect', times);
  }

  /** Charges whose request arrived before the registered time. `unregistered`: could not be judged. */
  async early(): Promise<{
    readonly count: number;
    readonly unregistered: number;
    readonly charges: readonly Charge[];
  }> {
    return (await this.control('GET', '/early')) as {
      count: number;
      unregistered: number;
      charges: Charge[];
    };
  }

  /** Every request that arrived, oldest first: also refused, replayed and disturbed ones. */
  async requests(paymentId?: string): Promise<readonly SeenRequest[]> {
    const query = paymentId === undefined ? '' : `?reference=${encodeURIComponent(paymentId)}`;
    return ((await this.control('GET', `/requests${query}`)) as { requests: SeenRequest[] }).requests;
  }

  async plan(plan: Plan): Promise<void> {
    await this.control('POST', '/plan', plan);
  }

  /** Shorthand: the faults of one payment's next requests of one operation. */
  async script(paymentId: string, operation: Operation, ...faults: readonly FaultInput[]): Promise<void> {
    await this.plan({ scripts: [{ reference: paymentId, [operation]: faults }] });
  }

  /** Changes what an account promises, such as `acct_a`. A restart keeps it, a reset does not. */
  async switchAccount(account: string, switches: AccountSwitches): Promise<void> {
    await this.control('POST', '/accounts', { account, ...switches });
  }

  /** Moves the provider's own clock ahead: keys expire, payouts end and return. Arrivals stay true. */
  async advanceClock(ms: number): Promise<void> {
    await this.control('POST', '/clock', { advance_ms: ms });
  }

  async setWebhook(endpoint: WebhookInput): Promise<void> {
    await this.control('POST', '/webhooks', endpoint);
  }

  /** `pending`: events that are neither delivered nor given up. */
  async webhooks(): Promise<{
    readonly pending: number;
    readonly endpoints: readonly {
      readonly account: string;
      readonly url: string;
      readonly scheme: string;
    }[];
  }> {
    return (await this.control('GET', '/webhooks')) as {
      pending: number;
      endpoints: { account: string; url: string; scheme: string }[];
    };
  }

  /** What was sent to endpoints and what they answered, oldest first. */
  async deliveries(paymentId?: string): Promise<readonly Delivery[]> {
    const query = paymentId === undefined ? '' : `?reference=${encodeURIComponent(paymentId)}`;
    const answer = await this.control('GET', `/webhooks/deliveries${query}`);
    return (answer as { deliveries: Delivery[] }).deliveries;
  }

  /** Sends all events of a payment once more, under their old ids. @returns how many. */
  async redeliver(paymentId: string): Promise<number> {
    return (
      (await this.control('POST', '/webhooks/redeliver', { reference: paymentId })) as { events: number }
    ).events;
  }

  /** The settlement file's text. */
  async settlement(query: SettlementQuery): Promise<string> {
    const { controlUrl, controlToken } = this.address();
    const response = await fetch(`${controlUrl}/settlement?${new URLSearchParams({ ...query }).toString()}`, {
      headers: { authorization: `Bearer ${controlToken}` },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`GET /settlement was refused: ${text}`);
    return text;
  }

  /** What is wrong in the file that `settlement` gives for the same query. */
  async settlementAnswers(query: SettlementQuery): Promise<readonly InjectedError[]> {
    const path = `/settlement/answers?${new URLSearchParams({ ...query }).toString()}`;
    return (await this.control('GET', path)) as InjectedError[];
  }

  /** Empties the ledger, sets clock, switches and plans back; requests under way are cut. */
  async reset(): Promise<void> {
    await this.control('POST', '/reset');
  }

  /** Closes the provider port: connections are refused until `resume`. The control port stays. */
  async suspend(): Promise<void> {
    await this.control('POST', '/listen', { open: false });
  }

  async resume(): Promise<void> {
    await this.control('POST', '/listen', { open: true });
  }

  /** Resets the next connections as soon as they are made. */
  async refuse(connections: number): Promise<void> {
    await this.control('POST', '/refuse', { connections });
  }

  /**
   * Waits until the requests of a payment fulfil a condition.
   * @throws Error when they do not within `timeoutMs`.
   */
  async untilRequests(
    paymentId: string,
    fulfilled: (requests: readonly SeenRequest[]) => boolean,
    timeoutMs = 20_000,
  ): Promise<readonly SeenRequest[]> {
    return until(() => this.requests(paymentId), fulfilled, timeoutMs, `requests of ${paymentId}`);
  }

  /** Waits until a payment was charged so many times. @throws Error when it was not in time. */
  async untilCharged(paymentId: string, count = 1, timeoutMs = 20_000): Promise<readonly Charge[]> {
    const reached = (e: { count: number }): boolean => e.count >= count;
    return (await until(() => this.effects(paymentId), reached, timeoutMs, `charges of ${paymentId}`))
      .charges;
  }

  async control(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    const { controlUrl, controlToken } = this.address();
    const response = await fetch(`${controlUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${controlToken}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const content = (await response.json()) as { error?: string };
    if (!response.ok) throw new Error(`${method} ${path} was refused: ${content.error}`);
    return content;
  }
}

async function until<T>(
  read: () => Promise<T>,
  fulfilled: (value: T) => boolean,
  timeoutMs: number,
  what: string,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await read();
    if (fulfilled(value)) return value;
    if (performance.now() > deadline) {
      throw new Error(`The ${what} did not become as expected: ${JSON.stringify(value)}`);
    }
    await new Promise((next) => setTimeout(next, 5));
  }
}
