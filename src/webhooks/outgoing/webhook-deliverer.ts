import type { DestinationCipher } from '../../encryption/destination-cipher.js';
import { unreadableCode } from '../../encryption/unreadable.js';
import { webhookEndpointsDisabledTotal, webhookOutTotal } from '../../metrics/metrics.js';
import type { Sql } from '../../persistence/database.js';
import { monotonicMs, pause } from '../../platform/clock.js';
import { openSecret } from './endpoint-secret.js';
import type { DeliveryResult, EventSender } from './event-sender.js';
import { replayStep, tidyDeliveries } from './replay.store.js';
import { waitAfter } from './retry-schedule.js';
import {
  recordDelivered,
  recordFailed,
  takeDeliveries,
  type DeadAfter,
  type TakenDelivery,
} from './webhook-delivery.store.js';

/** Deliveries under way in one worker: of one endpoint, so that a slow one holds no more, and in all. */
const PER_ENDPOINT = 8;
const AT_ONCE = 200;
/** Above a try's 15 s and its record: what is still being sent is not taken by another worker. */
const TAKEN_FOR_MS = 45_000;
/** An event may wait this long for its first look; an idle database should not be asked all the time. */
const POLL_MS = 500;
/** Tries that end within a moment are followed by one look. */
const NUDGE_MS = 10;
/** Five days without one event that arrived, over at least one event's ten tries. */
const DEAD: DeadAfter = { ms: 5 * 24 * 3_600_000, failures: 10 };
/** What fails on our side says nothing of the endpoint. */
const NEVER: DeadAfter = { ms: 1e13, failures: 10 };
const HOUSEKEEPING_MS = 1_000;
const TIDY_EVERY_MS = 3_600_000;

export interface DelivererParts {
  readonly sql: Sql;
  readonly cipher: Pick<DestinationCipher, 'decrypt'>;
  readonly sender: Pick<EventSender, 'send' | 'close'>;
  /** Something failed that is not the receiver's doing. */
  readonly fault: (operation: string, error: unknown) => void;
  /** An endpoint was disabled because nothing arrives there. */
  readonly endpointDisabled: (reason: 'gone' | 'failing') => void;
  readonly random?: () => number;
  readonly pollMs?: number;
  readonly dead?: DeadAfter;
  readonly perEndpoint?: number;
}

/**
 * Sends clients their events, in every worker, at least once. For each endpoint the events of a payment
 * go out one after the other, by version; payments and endpoints do not wait for each other. A worker
 * that dies between sending and recording leaves its deliveries to the next, which sends them again
 * under the same id.
 */
export class WebhookDeliverer {
  private stopped = false;
  private readonly stopping: Promise<void>;
  private tellStopping: () => void = () => undefined;
  private nudge: () => void = () => undefined;
  private loops: Promise<unknown> | null = null;
  private readonly running = new Set<Promise<void>>();
  private readonly busy = new Map<string, number>();

  constructor(private readonly parts: DelivererParts) {
    this.stopping = new Promise((resolve) => (this.tellStopping = resolve));
  }

  /** Begins to deliver. Twice: nothing. */
  start(): void {
    this.loops ??= Promise.all([this.run(), this.keepHouse()]);
  }

  /** Takes nothing new, waits for the tries under way (15 s at most). Twice: nothing. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.tellStopping();
    await this.loops;
    await this.parts.sender.close();
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      const ended = new Promise<void>((resolve) => (this.nudge = resolve));
      for (const delivery of await this.take()) this.begin(delivery);
      await Promise.race([pause(this.parts.pollMs ?? POLL_MS), ended, this.stopping]);
      await Promise.race([pause(NUDGE_MS), this.stopping]);
    }
    await Promise.all(this.running);
  }

  private async take(): Promise<readonly TakenDelivery[]> {
    const limit = AT_ONCE - this.running.size;
    if (limit === 0) return [];
    const perEndpoint = this.parts.perEndpoint ?? PER_ENDPOINT;
    try {
      return await takeDeliveries(this.parts.sql, {
        busy: this.busy,
        perEndpoint,
        limit,
        forMs: TAKEN_FOR_MS,
      });
    } catch (error) {
      this.parts.fault('webhook-out-take', error);
      return [];
    }
  }

  private begin(delivery: TakenDelivery): void {
    const { endpointId } = delivery;
    this.busy.set(endpointId, (this.busy.get(endpointId) ?? 0) + 1);
    const done: Promise<void> = this.one(delivery).finally(() => {
      this.running.delete(done);
      const left = (this.busy.get(endpointId) ?? 1) - 1;
      if (left > 0) this.busy.set(endpointId, left);
      else this.busy.delete(endpointId);
      // The next version of its payment may go now.
      this.nudge();
    });
    this.running.add(done);
  }

  /** One try and its record. Never throws: what cannot be recorded is taken again when its time is over. */
  private async one(delivery: TakenDelivery): Promise<void> {
    const startedAtMs = monotonicMs();
    try {
      const result = await this.send(delivery);
      await this.record(delivery, { ...result, durationMs: monotonicMs() - startedAtMs });
    } catch (error) {
      this.parts.fault('webhook-out', error);
    }
  }

  private async send(delivery: TakenDelivery): Promise<DeliveryResult> {
    let secrets: readonly string[];
    try {
      secrets = await this.secretsOf(delivery);
    } catch (error) {
      // A fault of storage is no word on the secret: the row is taken again.
      if (unreadableCode(error) === null) throw error;
      return { code: 'secret_unreadable', httpStatus: null };
    }
    return this.parts.sender.send(delivery.url, delivery, secrets);
  }

  /** Newest first. */
  private async secretsOf(of: TakenDelivery): Promise<readonly string[]> {
    const place = { tenant: of.tenantId, endpointId: of.endpointId };
    const sealed = [{ keyId: of.secretKeyId, ciphertext: of.secret }];
    if (of.previousSecret !== null && of.previousSecretKeyId !== null) {
      sealed.push({ keyId: of.previousSecretKeyId, ciphertext: of.previousSecret });
    }
    return Promise.all(sealed.map((each) => openSecret(this.parts.cipher, place, each)));
  }

  private async record(
    delivery: TakenDelivery,
    tried: DeliveryResult & { readonly durationMs: number },
  ): Promise<void> {
    const { sql, random = Math.random, dead = DEAD } = this.parts;
    webhookOutTotal.add({ result: tried.code });
    if (tried.code === 'delivered') return recordDelivered(sql, delivery, tried);
    // 410 says nothing of this event: it waits with the endpoint.
    const tries = delivery.tries + 1;
    const againInMs = tried.code === 'gone' ? 0 : waitAfter(tries, random());
    const isOurs = tried.code === 'secret_unreadable';
    const reason = await recordFailed(sql, delivery, tried, { againInMs, dead: isOurs ? NEVER : dead });
    if (againInMs === null) webhookOutTotal.add({ result: 'given_up' });
    if (reason === null) return;
    webhookEndpointsDisabledTotal.add({ reason });
    this.parts.endpointDisabled(reason);
  }

  /** Replays and old deliveries, beside the loop, so that neither delays an event. */
  private async keepHouse(): Promise<void> {
    let tidiedAtMs = -Infinity;
    while (!this.stopped) {
      try {
        const step = await replayStep(this.parts.sql);
        if ((step?.queued ?? 0) > 0) this.nudge();
        if (step?.isFull === true) continue;
        if (monotonicMs() - tidiedAtMs >= TIDY_EVERY_MS && !(await tidyDeliveries(this.parts.sql))) {
          tidiedAtMs = monotonicMs();
        }
      } catch (error) {
        this.parts.fault('webhook-out-housekeeping', error);
      }
      await Promise.race([pause(HOUSEKEEPING_MS), this.stopping]);
    }
  }
}
