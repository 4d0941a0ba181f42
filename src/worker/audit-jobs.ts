import { AnchorJob } from '../audit/anchor-job.js';
import { publicKeysOf } from '../audit/anchor-keys.js';
import { ChainJob } from '../audit/chain-job.js';
import type { VerifyReport } from '../audit/verify.js';
import type { AnchorKeySet } from '../config/key-file.js';
import { anchorRefused, chainOk } from '../metrics/metrics.js';
import { createFaultLog } from '../platform/fault-log.js';
import type { Log } from '../platform/logger.js';

/** How many broken links a run logs. */
const MOST_LOGGED = 5;

export interface AuditJobsOptions {
  readonly url: string;
  readonly keys: () => AnchorKeySet | undefined;
  readonly folder: string | null;
  readonly log: Log;
}

/** Anchors and hourly verification of a worker. */
export interface AuditJobs {
  start(): void;
  stop(): Promise<void>;
}

/** Without anchor keys nothing starts, and the log says so; production does not let it come to that. */
export function createAuditJobs({ url, keys, folder, log }: AuditJobsOptions): AuditJobs {
  const set = (): AnchorKeySet => {
    const found = keys();
    if (found === undefined) throw new Error('The key file lost its anchor set.');
    return found;
  };
  const logFault = createFaultLog(log);
  const anchors = new AnchorJob({
    url,
    keys: set,
    folder,
    events: {
      refused: (reason) => {
        anchorRefused.add({ reason });
        log.error({ operation: 'anchor', code: reason }, 'anchor_refused');
      },
      copiesDisagree: ({ kind, no }) => {
        chainOk.set({}, 0);
        log.error({ operation: 'anchor-copy', code: `${kind}:${no}` }, 'chain_broken');
      },
      fault: logFault,
    },
  });
  const chain = new ChainJob({
    url,
    publicKeys: () => publicKeysOf(set()),
    folder,
    verified: (report) => tellChain(report, log),
    fault: (operation, error) => {
      chainOk.set({}, -1);
      logFault(operation, error);
    },
  });
  let hasStarted = false;
  return {
    start: () => {
      if (keys() === undefined) return log.error({ code: 'no_anchor_keys' }, 'anchors_off');
      if (folder === null) log.warn({ code: 'no_anchor_folder' }, 'anchor_copies_off');
      hasStarted = true;
      anchors.start();
      // The first copies are there when they are looked at.
      void anchors.run().then(() => chain.start());
    },
    stop: async () => {
      await anchors.stop();
      if (hasStarted) await chain.stop();
    },
  };
}

/** A broken chain is a security event: somebody with rights over the database changed what happened. */
function tellChain(report: VerifyReport, log: Log): void {
  chainOk.set({}, report.brokenCount === 0 ? 1 : 0);
  for (const broken of report.broken.slice(0, MOST_LOGGED)) {
    const where =
      'paymentId' in broken
        ? { payment_id: broken.paymentId, version: broken.seq }
        : { version: broken.anchorNo };
    log.error({ operation: 'chain', code: broken.fault, ...where }, 'chain_broken');
  }
}
