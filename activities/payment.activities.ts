import type {
  ArmedPayment,
  BeginSubmissionAnswer,
  CancelAnswer,
  InquireAnswer,
  LookAnswer,
  PaymentActivities,
  SubmitPaymentAnswer,
} from '../workflows/contract.js';
import { askAgain, toFailure } from './failure-mapping.js';

type PaymentOnly = { readonly paymentId: string };

/** The services behind the activities; each says what it answers and what happens when it runs twice. */
export interface PaymentServices {
  readonly begin: { beginSubmission(input: ArmedPayment): Promise<BeginSubmissionAnswer> };
  readonly submit: { submitPayment(input: ArmedPayment): Promise<SubmitPaymentAnswer> };
  readonly inquiry: {
    inquire(
      input: PaymentOnly,
    ): Promise<InquireAnswer | { readonly kind: 'undecided'; readonly afterMs: number }>;
  };
  readonly commands: {
    cancelPayment(input: PaymentOnly): Promise<CancelAnswer>;
    look(input: PaymentOnly): Promise<LookAnswer>;
  };
  /** Told of every fault before it is translated, for log and metrics. */
  onFault(operation: string, error: unknown): void;
}

/** The activities of `executePayment`: thin, and the only place where faults become Temporal's failures. */
export function createPaymentActivities(services: PaymentServices): PaymentActivities {
  const guarded =
    <In, Out>(operation: string, run: (input: In) => Promise<Out>) =>
    async (input: In): Promise<Out> => {
      try {
        return await run(input);
      } catch (error) {
        services.onFault(operation, error);
        throw toFailure(error);
      }
    };
  const inquire = guarded('inquire', (input: PaymentOnly) => services.inquiry.inquire(input));
  return {
    beginSubmission: guarded('begin-submission', (input: ArmedPayment) =>
      services.begin.beginSubmission(input),
    ),
    submitPayment: guarded('submit-payment', (input: ArmedPayment) => services.submit.submitPayment(input)),
    cancelPayment: guarded('cancel', (input: PaymentOnly) => services.commands.cancelPayment(input)),
    look: guarded('look', (input: PaymentOnly) => services.commands.look(input)),
    async inquire(input: PaymentOnly): Promise<InquireAnswer> {
      const answer = await inquire(input);
      if (answer.kind === 'undecided') throw askAgain(answer.afterMs);
      return answer;
    },
  };
}
