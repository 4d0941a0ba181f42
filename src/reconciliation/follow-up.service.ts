import { contradictByLine, settleByLine, type SettlementNews } from '../payments/settlement-moves.js';
import type { PaymentReturns } from '../payments/payment-returns.service.js';
import type { Database, Sql } from '../persistence/database.js';
import { lineDone, lockOpenLine, openLines, rejudgeLine, type OpenLine } from './follow-up.store.js';
import type { FollowUp } from './judge-line.js';
import type { ReconciliationEvents } from './reconciliation-events.js';
import { countBuckets } from './settlement-row.store.js';

const LINES_AT_ONCE = 200;
const BEFORE_ALL = { fileId: 0n, rowNo: 0 };
/** A return is told after the success that it undoes, whatever their order in the file. */
const ROUNDS: readonly (readonly FollowUp[])[] = [['settle', 'contradict'], ['return']];

/** What a run did, in lines. */
export interface FollowedUp {
  /** Payments that became `succeeded` by their line. */
  readonly settled: number;
  /** Payments that became `returned`. */
  readonly returned: number;
  /** Lines against what is recorded: evidence and a case. */
  readonly contradicted: number;
  /** Lines that wait: a call is under way, or a return is told before its success. */
  readonly waiting: number;
  /** Lines that could not be done for a fault; they stay and come again. */
  readonly failed: number;
}

type Step = keyof FollowedUp | 'agrees' | 'with_people' | 'gone';

/** Does what stored lines ask for: settles, contradicts, records returns; one transaction each. */
export class FollowUpService {
  constructor(
    private readonly database: Database,
    private readonly returns: Pick<PaymentReturns, 'recordReturn'>,
    private readonly events: ReconciliationEvents,
  ) {}

  /**
   * Goes once over every line that waits for something, of whatever file. A line that cannot be done
   * now stays and is tried by the next run.
   * @param onProgress told after each portion how many lines were looked at so far.
   * @throws StorageUnavailable when Postgres cannot be reached. Twice: the second finds nothing to do.
   */
  async run(onProgress: (lines: number) => void = () => undefined): Promise<FollowedUp> {
    const done = { settled: 0, returned: 0, contradicted: 0, waiting: 0, failed: 0 };
    let looked = 0;
    for (const kinds of ROUNDS) {
      let after: { readonly fileId: bigint; readonly rowNo: number } = BEFORE_ALL;
      for (;;) {
        const lines = await openLines(this.database, { kinds, after, limit: LINES_AT_ONCE });
        for (const line of lines) {
          const step = await this.follow(line);
          if (step !== 'agrees' && step !== 'with_people' && step !== 'gone') done[step]++;
        }
        looked += lines.length;
        if (lines.length > 0) onProgress(looked);
        const last = lines.at(-1);
        if (last === undefined || lines.length < LINES_AT_ONCE) break;
        after = last;
      }
    }
    return done;
  }

  private async follow(line: OpenLine): Promise<Step> {
    try {
      if (line.followUp === 'return') return await this.recordReturn(line);
      return await this.database.transaction(async (tx) => {
        const open = await lockOpenLine(tx, line);
        if (open === null) return 'gone';
        return open.followUp === 'settle' ? this.settle(tx, open) : this.contradict(tx, open);
      });
    } catch (error) {
      if (error instanceof Error && error.name === 'StorageUnavailable') throw error;
      this.events.fault('reconcile', error);
      return 'failed';
    }
  }

  private async settle(tx: Sql, line: OpenLine): Promise<Step> {
    const result = await settleByLine(tx, newsOf(line));
    switch (result.kind) {
      case 'too_early':
        return 'waiting';
      case 'agrees':
      case 'with_people':
        await lineDone(tx, line);
        return result.kind;
      case 'settled':
        await lineDone(tx, line);
        this.events.moved({ from: result.from, to: 'succeeded', cause: 'record-outcome' });
        return 'settled';
      case 'contradicts': {
        // The payment ended otherwise between the judgement and now.
        const open = { ...line, bucket: 'unexpected_at_provider', reason: result.reason };
        await rejudgeLine(tx, line, { ...open, followUp: null, paymentId: null });
        await countBuckets(tx, line.provider, new Map([[open.bucket, 1]]));
        return this.contradict(tx, open);
      }
    }
  }

  private async contradict(tx: Sql, line: OpenLine): Promise<Step> {
    const { escalatedFrom } = await contradictByLine(tx, newsOf(line), caseReason(line.bucket));
    await lineDone(tx, line);
    if (escalatedFrom !== null) {
      this.events.moved({ from: escalatedFrom, to: 'needs_review', cause: 'escalate' });
    }
    this.events.contradiction(line.paymentId);
    return 'contradicted';
  }

  /** The service of returns has a transaction of its own and knows a return that it has recorded. */
  private async recordReturn(line: OpenLine): Promise<Step> {
    const result = await this.returns.recordReturn({
      paymentId: line.paymentId,
      returnId: line.txnId,
      amountMinor: line.grossMinor < 0n ? -line.grossMinor : line.grossMinor,
      currency: line.currency,
      source: 'settlement',
      code: 'settlement_return',
    });
    switch (result.kind) {
      case 'too_early':
        return 'waiting';
      case 'returned':
        await lineDone(this.database, line);
        return 'returned';
      case 'contradiction':
        await lineDone(this.database, line);
        return 'contradicted';
      case 'added':
      case 'repeated':
      case 'missing':
        await lineDone(this.database, line);
        return 'agrees';
    }
  }
}

/** The reason of a case says what people must decide; which line it is, its evidence tells. */
function caseReason(bucket: string): string {
  return bucket === 'unexpected_at_provider' ? 'unexpected_at_provider' : 'settlement_differs';
}

function newsOf(line: OpenLine): SettlementNews {
  return {
    paymentId: line.paymentId,
    provider: line.provider,
    generation: line.generation,
    providerRef: line.sourceId,
    amountMinor: line.grossMinor < 0n ? -line.grossMinor : line.grossMinor,
    currency: line.currency,
    kind: line.bucket,
    code: line.reason,
  };
}
