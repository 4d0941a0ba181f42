import { Client, Connection } from '@temporalio/client';
import { EXECUTE_PAYMENT } from '../../workflows/contract.js';

const CALL_WITHIN_MS = 10_000;
/** One pair of armed activities has two; every more is a payment that was armed again. */
const ACTIVITIES_OF_A_PAIR = 2;
/** Number of EVENT_TYPE_ACTIVITY_TASK_SCHEDULED in Temporal's protocol. */
const ACTIVITY_SCHEDULED = 10;
const ALL = `WorkflowType = '${EXECUTE_PAYMENT}'`;

export interface TemporalFacts {
  readonly version: string;
  /** History shards, fixed for the life of a cluster; they bound what one server can do at once. */
  readonly historyShards: number;
  /** What the server says it stores in, e.g. "sqlite" or "postgres12_pgx". */
  readonly persistence: string;
}

/** History of a sample of payments, each number the fewest, the median and the most. */
export interface HistorySample {
  readonly payments: number;
  readonly events: readonly [number, number, number];
  /** Payments that were armed more than once. */
  readonly rearmed: number;
}

/** What Temporal says of the workflows of one stack. */
export class WorkflowRuns {
  private constructor(private readonly client: Client) {}

  /** @throws Error when the server does not answer. */
  static async connect(address: string, namespace: string): Promise<WorkflowRuns> {
    const connection = await Connection.connect({ address, channelArgs: { 'grpc.enable_http_proxy': 0 } });
    return new WorkflowRuns(new Client({ connection, namespace }));
  }

  async close(): Promise<void> {
    await this.client.connection.close();
  }

  async facts(): Promise<TemporalFacts> {
    const info = await this.#call(() => this.client.connection.workflowService.getClusterInfo({}));
    return {
      version: info.serverVersion ?? '?',
      historyShards: info.historyShardCount ?? 0,
      persistence: info.persistenceStore ?? '?',
    };
  }

  /** Payment workflows that have ended, by visibility, which is late by a fraction of a second. */
  async closedCount(): Promise<number> {
    return this.#count(`${ALL} AND ExecutionStatus != 'Running'`);
  }

  async count(): Promise<number> {
    return this.#count(ALL);
  }

  /** When the newest ended workflow ended: epoch ms of the server's clock; null: none has. */
  async lastClosedAt(): Promise<number | null> {
    const query = `${ALL} AND ExecutionStatus != 'Running'`;
    for await (const run of this.client.workflow.list({ query, pageSize: 1 })) {
      return run.closeTime?.getTime() ?? null;
    }
    return null;
  }

  /** Reads the histories of at most `most` of the payments, evenly picked. */
  async sampleHistories(ids: readonly string[], most: number): Promise<HistorySample> {
    const size = Math.min(most, ids.length);
    const counts: number[] = [];
    let rearmed = 0;
    for (let i = 0; i < size; i++) {
      const id = ids[Math.floor((i * ids.length) / size)] ?? '';
      const { events } = await this.#call(() => this.client.workflow.getHandle(id).fetchHistory());
      const scheduled = events?.filter((event) => event.eventType === ACTIVITY_SCHEDULED).length ?? 0;
      counts.push(events?.length ?? 0);
      if (scheduled > ACTIVITIES_OF_A_PAIR) rearmed++;
    }
    counts.sort((a, b) => a - b);
    const at = (share: number): number => counts[Math.floor(share * (counts.length - 1))] ?? 0;
    return { payments: size, events: [at(0), at(0.5), at(1)], rearmed };
  }

  async #count(query: string): Promise<number> {
    return (await this.#call(() => this.client.workflow.count(query))).count;
  }

  #call<T>(call: () => Promise<T>): Promise<T> {
    return this.client.connection.withDeadline(Date.now() + CALL_WITHIN_MS, call);
  }
}
