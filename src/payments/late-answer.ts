import type { PaymentState } from '../domain/payment-state.js';
import type { Sql, Statement } from '../persistence/database.js';
import { escalateBeforeCall, escalateToReview, openCase } from './review-moves.js';

/** An answer to an attempt that somebody else had closed: words of the provider port, and which attempt. */
export interface LateAnswer {
  readonly paymentId: string;
  readonly generation: number;
  readonly class: string;
  readonly status: string | null;
  readonly providerRef: string | null;
  /** `worker:<id>`. */
  readonly actor: string;
}

const LOCK: Statement = {
  name: 'late-answer-lock',
  text: `SELECT p.state, p.provider_ref AS "providerRef",
      (SELECT max(g.generation) FROM submission g WHERE g.payment_id = p.id)::integer AS "newestGeneration"
    FROM payment p WHERE p.id = $1 FOR NO KEY UPDATE OF p`,
};

interface Head {
  readonly state: PaymentState;
  readonly providerRef: string | null;
  readonly newestGeneration: number | null;
}

export interface LateVerdict {
  /** People have a case that they did not have. */
  readonly caseOpened: boolean;
  /** The state left by T16; null: the state stayed. */
  readonly escalatedFrom: PaymentState | null;
}

const AGREES: LateVerdict = { caseOpened: false, escalatedFrom: null };

/**
 * Compares a late answer with what the payment became, and has `file` file it, under the payment's lock:
 * whoever decides by silence at the same moment either sees the row or is seen here. Nothing is settled
 * by it. People get a case when it was accepted after all, refused after all, is somebody else's, or is
 * another object than the one that paid; and when an earlier generation than the newest was accepted,
 * in whatever state: then an open outcome goes to review (T16), `submitting` before a call goes out.
 * @param tx a transaction; the move, the case and the evidence are one commit.
 * @returns what was opened. Twice: one case.
 */
export async function compareLateAnswer(
  tx: Sql,
  answer: LateAnswer,
  file: () => Promise<unknown>,
): Promise<LateVerdict> {
  const { rows } = await tx.query<Head>(LOCK, [answer.paymentId]);
  const head = rows[0];
  if (!head) throw new Error(`payment ${answer.paymentId} is gone, which the database rules out`);
  await file();
  const { paymentId, actor } = answer;
  if (isOfEarlierGeneration(answer, head)) return giveToPeople(tx, { paymentId, actor, state: head.state });
  if (!isAgainst(answer, head)) return AGREES;
  return { caseOpened: await openCase(tx, { paymentId, reason: 'contradiction' }), escalatedFrom: null };
}

/** What was made and is inert moved nothing. */
const isTaken = ({ class: of, status }: LateAnswer): boolean =>
  of === 'accepted' && (status === null || status === 'pending' || status === 'succeeded');

function isOfEarlierGeneration(answer: LateAnswer, { newestGeneration }: Head): boolean {
  return isTaken(answer) && newestGeneration !== null && answer.generation < newestGeneration;
}

function isAgainst(answer: LateAnswer, { state, providerRef }: Head): boolean {
  const isPaid = state === 'succeeded' || state === 'returned';
  const isUnpaid = state === 'failed' || state === 'cancelled' || state === 'expired';
  const isOther = answer.providerRef !== null && providerRef !== null && answer.providerRef !== providerRef;
  if (isTaken(answer)) return isUnpaid || (isPaid && isOther);
  if (answer.class === 'rejected' || answer.class === 'rejected_funds') return isPaid;
  return answer.class === 'key_mismatch' && (isPaid || isUnpaid);
}

async function giveToPeople(
  tx: Sql,
  of: { readonly paymentId: string; readonly actor: string; readonly state: PaymentState },
): Promise<LateVerdict> {
  const { paymentId, actor, state } = of;
  const reason = 'other_generation';
  const moved =
    state === 'submitting'
      ? await escalateBeforeCall(tx, { paymentId, reason, actor })
      : state === 'submitted' || state === 'unknown'
        ? await escalateToReview(tx, { tenant: null, paymentId, reason, actor })
        : null;
  if (moved?.kind === 'moved') return { caseOpened: true, escalatedFrom: state };
  // Final, in review already, or with a call under way: the case stays open whatever that comes to.
  return { caseOpened: await openCase(tx, { paymentId, reason }), escalatedFrom: null };
}
