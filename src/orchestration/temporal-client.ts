import { Client, Connection } from '@temporalio/client';
import type { Config } from '../config/config.js';
import { ensureReconciliationSchedule } from './reconciliation-schedule.js';
import { TemporalWorkflowStarter } from './temporal-workflow-starter.js';

export interface Orchestration {
  readonly starter: TemporalWorkflowStarter;
  /** See ensureReconciliationSchedule. */
  readonly ensureReconciliation: () => Promise<void>;
  close(): Promise<void>;
}

/**
 * The client side of Temporal. Connects on the first call and again after an outage, so that a
 * process starts and serves while Temporal is away.
 */
export function createOrchestration(config: Config['temporal']): Orchestration {
  const connection = Connection.lazy({ address: config.address, tls: config.tls ?? false });
  const client = new Client({ connection, namespace: config.namespace });
  return {
    starter: new TemporalWorkflowStarter(client),
    ensureReconciliation: () => ensureReconciliationSchedule(client),
    close: () => connection.close(),
  };
}
