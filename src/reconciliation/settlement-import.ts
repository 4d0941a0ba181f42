import { PaymentReturns } from '../payments/payment-returns.service.js';
import { Database } from '../persistence/database.js';
import { FollowUpService } from './follow-up.service.js';
import { MISSING_QUERY_MS } from './missing.store.js';
import { SILENT_EVENTS } from './reconciliation-events.js';
import { knowsProvider } from './settlement-file.store.js';
import { UnusableFile } from './settlement-line.js';
import {
  SettlementImportService,
  type ImportRequest,
  type ImportResult,
} from './settlement-import.service.js';

export type { ImportProgress, ImportRequest, ImportResult } from './settlement-import.service.js';

/** The relay of a running worker looks by itself; this program has none to nudge. */
const NO_NUDGE = { nudge: (): void => undefined };

/**
 * Imports one file with connections of its own, for programs that a person runs.
 * @throws UnusableFile also when no lane knows the provider; otherwise as
 * SettlementImportService.importFile.
 */
export async function importSettlementFile(
  url: string,
  request: ImportRequest,
  applicationName: string,
): Promise<ImportResult> {
  const database = new Database({ url, poolSize: 3, applicationName });
  const wholeTables = new Database({ url, poolSize: 1, applicationName, queryMs: MISSING_QUERY_MS });
  try {
    const { known, providers } = await knowsProvider(database, request.provider);
    if (!known) {
      throw new UnusableFile(
        `No payment goes through a provider ${request.provider}. Known: ${providers.join(', ') || 'none'}.`,
      );
    }
    const followUps = new FollowUpService(database, new PaymentReturns(database, NO_NUDGE), SILENT_EVENTS);
    return await new SettlementImportService(database, wholeTables, followUps).importFile(request);
  } finally {
    await Promise.all([database.close(), wholeTables.close()]);
  }
}
