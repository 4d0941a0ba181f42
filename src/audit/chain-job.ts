import { PeriodicJob } from '../platform/periodic-job.js';
import type { AnchorPublicKeys } from './anchor-keys.js';
import { verifyHistory, type VerifyReport } from './verify.js';

export const CHAIN_EVERY_MS = 3_600_000;
/** Twice the time between runs, so that nothing falls between two of them (ms). */
const RECENT_MS = 2 * CHAIN_EVERY_MS;

export interface ChainJobOptions {
  readonly url: string;
  readonly publicKeys: () => AnchorPublicKeys;
  /** null: there are no copies here. */
  readonly folder: string | null;
  readonly verified: (report: VerifyReport) => void;
  readonly fault: (operation: string, error: unknown) => void;
}

/** Verifies once an hour what changed lately; the command line verifies everything. */
export class ChainJob {
  private readonly job = new PeriodicJob(() => this.verify(), CHAIN_EVERY_MS);

  constructor(private readonly options: ChainJobOptions) {}

  /** Runs now and every hour. Throws nothing. */
  start(): void {
    this.job.start();
  }

  /** No run starts after this; resolves when the one under way has ended. */
  stop(): Promise<void> {
    return this.job.stop();
  }

  /** One run, never two at once. Throws nothing. */
  run(): Promise<void> {
    return this.job.run();
  }

  private async verify(): Promise<void> {
    const { url, publicKeys, folder, verified, fault } = this.options;
    try {
      const since = new Date(Date.now() - RECENT_MS).toISOString();
      verified(
        await verifyHistory({
          url,
          applicationName: 'payments-chain',
          publicKeys: publicKeys(),
          since,
          paymentId: null,
          copies: folder,
        }),
      );
    } catch (error) {
      fault('chain', error);
    }
  }
}
