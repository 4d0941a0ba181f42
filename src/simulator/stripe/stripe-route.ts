import { ABILITIES } from '../account.js';
import type { SimulatedAccount } from '../account.js';
import { errorAnswer } from '../payout-answer.js';
import type { Answer } from '../payout-answer.js';
import type { PayoutForm } from '../payout-book.js';
import type { ListQuery } from '../payout-lookups.js';
import type { PayoutParameters } from '../payout-parameters.js';
import { OPERATION_OF, readNumber, write } from '../provider-route.js';
import type { Incoming, Understood } from '../provider-route.js';
import { readForm, textOf, textsOf } from './stripe-form.js';
import type { Form } from './stripe-form.js';

type StripeForm = Exclude<PayoutForm, 'payout'>;

const FORMS: Readonly<Record<string, StripeForm>> = Object.freeze({
  transfers: 'transfer',
  payment_intents: 'payment_intent',
});

interface Line {
  readonly form: StripeForm;
  readonly kind: keyof typeof OPERATION_OF;
  readonly id: string | null;
  readonly query: Form;
}

/** Objects on a page unless the client asks for more, and the most that it may ask for. */
const PAGE_SIZE = 10;
const LARGEST_PAGE = 100;
/** The reference of an object whose maker named none. */
const UNREFERENCED = 'unreferenced';

/** Which of Stripe's products a path belongs to; null: none. */
export function stripeFormOf(path: string): StripeForm | null {
  const [, name] = /^\/v1\/(transfers|payment_intents)(?:[/?]|$)/.exec(path) ?? [];
  return name === undefined ? null : (FORMS[name] ?? null);
}

/**
 * Reads the part of Stripe's API that moves money here: `/v1/transfers` (create, retrieve, list) and
 * `/v1/payment_intents` (create, confirm, cancel, retrieve, list). A transfer moves at once, a
 * PaymentIntent when it is confirmed. The reference in the ledger is `metadata[payment_id]` and
 * `metadata[generation]`, else the transfer group.
 */
export function understandStripe({ method, path, body, account }: Incoming): Understood {
  const line = readLine(method, path);
  const form = body === null ? null : readForm(body);
  const known = {
    operation: line ? OPERATION_OF[line.kind] : null,
    reference: referenceIn(line, form),
    payoutId: line?.id ?? null,
  };
  const refused = (answer: Answer): Understood => ({ ...known, wish: { kind: 'refused', answer } });
  if (!account) return refused(errorAnswer(401, 'invalid_api_key', 'Unknown API key.'));
  if (!line || !exists(line, account)) return refused(errorAnswer(404, 'unknown_path', 'Nothing here.'));
  if (!form) return refused(wrong('The body cannot be read.'));
  switch (line.kind) {
    case 'create': {
      const parameters = readParameters(line.form, form);
      if (typeof parameters === 'string') return refused(wrong(`Missing or invalid: ${parameters}.`));
      return write(known, account, { kind: 'create', parameters });
    }
    case 'commit':
    case 'cancel':
      return write(known, account, { kind: line.kind, id: line.id ?? '' });
    case 'read':
      return { ...known, wish: { kind: 'read', account, form: line.form, id: line.id ?? '' } };
    case 'list': {
      const query = readListQuery(line.form, line.query);
      return query
        ? { ...known, wish: { kind: 'list', account, query } }
        : refused(wrong('Invalid limit or created.'));
    }
  }
}

function exists({ kind, form }: Line, account: SimulatedAccount): boolean {
  const isLookup = kind === 'read' || kind === 'list';
  if (isLookup) return ABILITIES[account.profile].lookups;
  return form === 'payment_intent' || kind === 'create';
}

function wrong(message: string): Answer {
  return errorAnswer(400, 'parameter_missing', message);
}

function readLine(method: string, path: string): Line | null {
  const match = /^\/v1\/(transfers|payment_intents)(?:\/(\w{1,64})(?:\/(confirm|cancel))?)?(?:\?(.*))?$/.exec(
    path,
  );
  const form = stripeFormOf(path);
  if (!match || !form) return null;
  const [, , id = null, verb, text = ''] = match;
  const query = readForm(text);
  if (!query) return null;
  const line = (kind: Line['kind']): Line => ({ form, kind, id, query });
  if (method === 'GET' && verb === undefined) return line(id === null ? 'list' : 'read');
  if (method !== 'POST') return null;
  if (id === null) return line('create');
  if (verb === undefined) return null;
  return line(verb === 'confirm' ? 'commit' : 'cancel');
}

/** A list by transfer group is about that payment; other lists are about nobody's. */
function referenceIn(line: Line | null, form: Form | null): string | null {
  if (line?.kind === 'list') return textOf(line.query, 'transfer_group');
  return line?.kind === 'create' && form ? referenceOf(form) : null;
}

function referenceOf(form: Form): string {
  const { payment_id: paymentId, generation = '1' } = textsOf(form, 'metadata');
  return paymentId ? `${paymentId}/${generation}` : (textOf(form, 'transfer_group') ?? UNREFERENCED);
}

/** @returns the name of the first parameter that is missing or invalid. */
function readParameters(form: StripeForm, given: Form): PayoutParameters | string {
  const amount = readNumber(textOf(given, 'amount'));
  if (amount === null || Number.isNaN(amount) || amount < 1) return 'amount';
  const currency = textOf(given, 'currency') ?? '';
  if (!/^[a-z]{3}$/i.test(currency)) return 'currency';
  const destination = form === 'transfer' ? textOf(given, 'destination') : methodOf(given);
  if (form === 'transfer' && !destination) return 'destination';
  // An object that commits itself would move money outside of the two steps.
  if (textOf(given, 'confirm') === 'true') return 'confirm (create first, then confirm)';
  return {
    form,
    phases: form === 'transfer' ? 1 : 2,
    amount,
    currency: currency.toUpperCase(),
    destination: destination ?? '',
    reference: referenceOf(given),
    description: textOf(given, 'description'),
    clientReference: null,
    details: given,
  };
}

function methodOf(given: Form): string | null {
  const method = textOf(given, 'payment_method');
  const customer = textOf(given, 'customer');
  return method !== null && customer !== null ? `${customer}:${method}` : method;
}

function readListQuery(form: StripeForm, query: Form): ListQuery | null {
  const { gte = null, gt = null, lte = null, lt = null } = textsOf(query, 'created');
  const [from, after, to, before] = [gte, gt, lte, lt].map(readNumber);
  const limit = readNumber(textOf(query, 'limit')) ?? PAGE_SIZE;
  const numbers = [from, after, to, before, limit].filter((value) => value != null);
  if (numbers.some(Number.isNaN) || limit < 1 || limit > LARGEST_PAGE) return null;
  const details: Record<string, string> = {};
  for (const name of ['transfer_group', 'destination', 'customer']) {
    const text = textOf(query, name);
    if (text !== null) details[name] = text;
  }
  return {
    form,
    reference: null,
    details,
    createdFrom: from ?? (after == null ? null : after + 1),
    createdTo: to ?? (before == null ? null : before - 1),
    startingAfter: textOf(query, 'starting_after'),
    limit,
    newestFirst: true,
  };
}
