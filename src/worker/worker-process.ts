import { createPaymentActivities } from '../../activities/payment.activities.js';
import { createReconciliationActivities } from '../../activities/reconciliation.activities.js';
import type { Config } from '../config/config.js';
import type { AnchorKeySet } from '../config/key-file.js';
import { neededUrl } from '../config/database-settings.js';
import { startHealthServer, type HealthServer } from '../http/health-server.js';
import { READINESS_CHECK_MS, readiness } from '../http/readiness.js';
import { InvariantJob } from '../invariants/invariant-job.js';
import { ensureLanes } from '../lanes/lane.store.js';
import { startDatabaseGauges, type DatabaseGauges } from '../metrics/database-gauges.js';
import { armedPayments, metricsText } from '../metrics/metrics.js';
import { startProcessGauges } from '../metrics/process-gauges.js';
import type { Orchestration } from '../orchestration/temporal-client.js';
import type { OutboxRelay } from '../outbox/outbox-relay.js';
import { databaseStanding } from '../persistence/database-standing.js';
import { Database } from '../persistence/database.js';
import { refuseToStart, StartUpRefused } from '../persistence/start-up-check.js';
import { pause } from '../platform/clock.js';
import type { Log } from '../platform/logger.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { SubmissionEngine } from '../submission/submission-engine.js';
import type { ReviewLookups } from '../submission/review-lookups.js';
import type { Sweep } from '../submission/sweep.js';
import type { WebhookInbox } from '../webhooks/incoming/webhook-inbox.js';
import type { WebhookDeliverer } from '../webhooks/outgoing/webhook-deliverer.js';
import type { ReconciliationService } from '../reconciliation/reconciliation.service.js';
import { createAuditJobs, type AuditJobs } from './audit-jobs.js';
import { keepReconciliationScheduled } from './reconciliation-job.js';
import { runTemporalWorker, type RunningWorker } from './temporal-worker.js';

const AGAIN_MS = 1_000;
const GAUGE_MS = 1_000;

export interface WorkerProcessParts {
  readonly config: Config;
  readonly log: Log;
  /** The keys that sign anchors, as they are now. */
  readonly anchorKeys: () => AnchorKeySet | undefined;
  /** As payments_worker. */
  readonly database: Database;
  /** As payments_relay. */
  readonly relayDatabase: Database;
  readonly engine: SubmissionEngine;
  readonly relay: OutboxRelay;
  readonly sweep: Sweep;
  readonly reviewLookups: ReviewLookups;
  readonly webhooks: WebhookInbox;
  readonly clientWebhooks: WebhookDeliverer;
  readonly reconciliation: ReconciliationService;
  readonly providers: ProviderRegistry;
  readonly orchestration: Orchestration;
}

/** The life of a worker process: start in an order in which everything may be away, stop in order. */
export class WorkerProcess {
  private stopping = false;
  private temporal: RunningWorker | null = null;
  private health: HealthServer | null = null;
  private gauges: DatabaseGauges | null = null;
  private readonly timers: (() => void)[] = [];
  private readonly invariants: InvariantJob;
  private readonly audit: AuditJobs;
  /** As payments_read. */
  private readonly readDatabase: Database;
  /** A connection of its own: a busy pool is no reason to be called not ready. */
  private readonly probe: Database;

  constructor(private readonly parts: WorkerProcessParts) {
    const url = neededUrl(parts.config.database, 'read');
    this.invariants = new InvariantJob({ url, log: parts.log });
    this.audit = createAuditJobs({
      url: parts.config.database.url,
      keys: parts.anchorKeys,
      folder: parts.config.anchorFolder,
      log: parts.log,
    });
    this.readDatabase = new Database({ url, poolSize: 1, applicationName: 'payments-gauges' });
    this.probe = new Database({
      ...parts.config.database,
      poolSize: 1,
      applicationName: 'payments-worker-ready',
      queryMs: READINESS_CHECK_MS,
    });
  }

  /** Runs until `stop`. @throws when Temporal's SDK fails for good. */
  async run(): Promise<void> {
    const { parts } = this;
    this.health = await this.serveHealth();
    this.timers.push(startProcessGauges(parts.database), this.showArmed());
    this.gauges = startDatabaseGauges({ sql: this.readDatabase, log: parts.log });
    await this.untilDone('rights', () => this.mayStart());
    await this.untilDone('lanes', () =>
      ensureLanes(parts.database, parts.providers.names().flatMap((n) => parts.providers.get(n) ?? [])),
    ); // prettier-ignore
    await this.untilDone('engine', () => parts.engine.start());
    if (!this.stopping) {
      parts.relay.start();
      parts.sweep.start();
      parts.engine.dueInquiries.start();
      parts.reviewLookups.start();
      parts.webhooks.start();
      parts.clientWebhooks.start();
      this.invariants.start();
      this.audit.start();
      const { ensureReconciliation } = parts.orchestration;
      const onFault = (operation: string, error: unknown): void =>
        parts.engine.services.onFault(operation, error);
      this.timers.push(keepReconciliationScheduled(ensureReconciliation, onFault));
      this.temporal = await runTemporalWorker({
        temporal: parts.config.temporal,
        activities: {
          ...createPaymentActivities(parts.engine.services),
          ...createReconciliationActivities(parts.reconciliation, onFault),
        },
        maxArmed: parts.config.maxArmed,
        log: parts.log,
        isStopping: () => this.stopping,
      });
    }
    if (this.stopping) this.temporal?.shutdown();
    parts.log.info({}, 'worker_started');
    await this.temporal?.done;
    await this.close();
  }

  /** No new tasks; what is due soon runs, the rest is handed on. Twice: nothing. */
  stop(): void {
    if (this.stopping) return;
    this.stopping = true;
    this.parts.log.info({}, 'worker_stopping');
    this.temporal?.shutdown();
    if (this.temporal) this.parts.engine.drain();
  }

  private async close(): Promise<void> {
    const { parts } = this;
    for (const stop of this.timers) stop();
    await Promise.allSettled([
      parts.relay.stop(),
      parts.sweep.stop(),
      parts.engine.dueInquiries.stop(),
      parts.reviewLookups.stop(),
      parts.webhooks.stop(),
      parts.clientWebhooks.stop(),
      this.invariants.stop(),
      this.audit.stop(),
      this.gauges?.stop(),
    ]);
    await this.temporal?.close();
    // The lease goes last: until here others must leave our attempts alone.
    await parts.engine.stop().catch((error: unknown) => parts.log.warn({ err: error }, 'lease_not_returned'));
    await Promise.allSettled([parts.providers.closeAll(), parts.orchestration.close(), this.health?.stop()]);
    const pools = [parts.database, parts.relayDatabase, this.readDatabase, this.probe];
    await Promise.all(pools.map((pool) => pool.close()));
    parts.log.info({}, 'worker_stopped');
  }

  private serveHealth(): Promise<HealthServer> {
    const { engine, config } = this.parts;
    return startHealthServer({
      ...config.health,
      live: () => true,
      ready: readiness({
        serving: { required: true, run: () => !this.stopping },
        postgres: { required: true, run: () => databaseStanding(this.probe) },
        lease_and_clock: { required: true, run: () => engine.isWell() },
        pollers: { required: true, run: async () => (await this.temporal?.isPolling()) ?? false },
      }),
      metrics: metricsText,
    });
  }

  private showArmed(): () => void {
    const timer = setInterval(() => armedPayments.set({}, this.parts.engine.gauges().armed), GAUGE_MS);
    timer.unref();
    return () => clearInterval(timer);
  }

  /** @throws StartUpRefused when the server or a log-in is not what this process may run on. */
  private async mayStart(): Promise<void> {
    if (this.parts.config.mode === 'production' && this.parts.anchorKeys() === undefined) {
      throw new StartUpRefused(
        'The key file holds no anchor set: nobody could prove the history afterwards. See .env.example.',
      );
    }
    await refuseToStart(this.parts.database, 'payments_worker');
    await refuseToStart(this.parts.relayDatabase, 'payments_relay');
    await refuseToStart(this.readDatabase, 'payments_read');
  }

  /** A dependency may come later than this process. */
  private async untilDone(what: string, step: () => Promise<unknown>): Promise<void> {
    while (!this.stopping) {
      try {
        await step();
        return;
      } catch (error) {
        if (error instanceof StartUpRefused) throw error;
        this.parts.log.warn({ operation: what, err: error }, 'waiting_for_dependency');
        await pause(AGAIN_MS);
      }
    }
  }
}
