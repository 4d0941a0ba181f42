import { ABILITIES } from './account.js';
import type { SimulatedAccount } from './account.js';
import type { CallOperation } from './fault.js';
import { errorAnswer } from './payout-answer.js';
import type { Answer } from './payout-answer.js';
import type { PayoutForm } from './payout-book.js';
import type { ListQuery } from './payout-lookups.js';
import { readPayoutParameters } from './payout-parameters.js';
import type { Instruction } from './payout-protocol.js';

/** What one request asks of the provider. */
export type Wish =
  | {
      readonly kind: 'write';
      readonly operation: 'submit' | 'commit' | 'cancel';
      readonly account: SimulatedAccount;
      readonly instruction: Instruction;
    }
  | {
      readonly kind: 'read';
      readonly account: SimulatedAccount;
      readonly form: PayoutForm;
      readonly id: string;
    }
  | { readonly kind: 'list'; readonly account: SimulatedAccount; readonly query: ListQuery }
  | { readonly kind: 'refused'; readonly answer: Answer };

export interface Understood {
  readonly wish: Wish;
  /** null: the path is none of the protocol's. */
  readonly operation: CallOperation | null;
  /** The reference named by the request itself; null when it names a payout or nothing. */
  readonly reference: string | null;
  readonly payoutId: string | null;
}

/** One request as it came. */
export interface Incoming {
  readonly method: string;
  readonly path: string;
  /** null: it was longer than 64 KiB. */
  readonly body: string | null;
  /** null: the bearer key is unknown. */
  readonly account: SimulatedAccount | null;
}

type Line =
  | { readonly kind: 'create' }
  | { readonly kind: 'commit' | 'cancel' | 'read'; readonly id: string }
  | { readonly kind: 'list'; readonly query: ListQuery };

export const OPERATION_OF = {
  create: 'submit',
  commit: 'commit',
  cancel: 'cancel',
  read: 'lookup',
  list: 'lookup',
} as const;

/** Objects on a page unless the client asks for fewer, and the most that it may ask for. */
const PAGE_SIZE = 100;

/**
 * Reads `POST /v1/payouts`, `POST /v1/payouts/{id}/commit` and `/cancel` (profile T),
 * `GET /v1/payouts/{id}`, `GET /v1/payouts?reference=` and the scan `GET /v1/payouts?created_from=`
 * with `created_to`, `starting_after` and `limit`. What is refused still says its reference, so that
 * the log of requests can show it.
 */
export function understand({ method, path, body, account }: Incoming): Understood {
  const line = readLine(method, path);
  const parameters = line?.kind === 'create' && body !== null ? readPayoutParameters(body) : null;
  const known = {
    operation: line ? OPERATION_OF[line.kind] : null,
    reference:
      parameters?.kind === 'parameters'
        ? parameters.parameters.reference
        : line?.kind === 'list'
          ? line.query.reference
          : null,
    payoutId: line && 'id' in line ? line.id : null,
  };
  const refused = (answer: Answer): Understood => ({ ...known, wish: { kind: 'refused', answer } });

  if (!account) return refused(errorAnswer(401, 'invalid_api_key', 'Unknown API key.'));
  const { phases, lookups } = ABILITIES[account.profile];
  const isLookup = line?.kind === 'read' || line?.kind === 'list';
  if (line?.kind === 'list' && !lookups) return refused(methodNotAllowed());
  const exists = line !== null && (lookups || !isLookup);
  if (!exists || ((line.kind === 'commit' || line.kind === 'cancel') && phases === 1)) {
    return refused(errorAnswer(404, 'unknown_path', 'There is nothing here.'));
  }
  if (body === null) return refused(errorAnswer(413, 'body_too_large', 'The body is longer than 64 KiB.'));
  if (parameters?.kind === 'wrong') {
    const message = `The parameter ${parameters.parameter} is missing, malformed or unknown.`;
    return refused(errorAnswer(400, 'parameter_invalid', message));
  }
  switch (line.kind) {
    case 'create':
      if (!parameters) throw new Error('A readable body has parameters.');
      return write(known, account, { ...parameters, kind: 'create' });
    case 'commit':
    case 'cancel':
      return write(known, account, { kind: line.kind, id: line.id });
    case 'read':
      return { ...known, wish: { kind: 'read', account, form: 'payout', id: line.id } };
    case 'list':
      return { ...known, wish: { kind: 'list', account, query: line.query } };
  }
}

/** An understood call that writes. */
export function write(
  known: Omit<Understood, 'wish'>,
  account: SimulatedAccount,
  instruction: Instruction,
): Understood {
  const operation = OPERATION_OF[instruction.kind];
  return { ...known, wish: { kind: 'write', operation, account, instruction } };
}

/** What profiles without lookups say to a list: only POST exists on this path. */
function methodNotAllowed(): Answer {
  return errorAnswer(405, 'method_not_allowed', 'Only POST is possible here.');
}

function readLine(method: string, path: string): Line | null {
  const match = /^\/v1\/payouts(?:\/(\w{1,64})(?:\/(commit|cancel))?)?(?:\?(.*))?$/.exec(path);
  if (!match) return null;
  const [, id, verb, query] = match;
  if (method === 'POST' && query === undefined) {
    if (id === undefined) return { kind: 'create' };
    return verb === 'commit' || verb === 'cancel' ? { kind: verb, id } : null;
  }
  if (method !== 'GET' || verb !== undefined) return null;
  if (id !== undefined) return query === undefined ? { kind: 'read', id } : null;
  const list = query === undefined ? null : readListQuery(new URLSearchParams(query));
  return list && { kind: 'list', query: list };
}

/** By reference, or a scan of all since a time; a list of everything is not offered. */
function readListQuery(query: URLSearchParams): ListQuery | null {
  const reference = query.get('reference') || null;
  const createdFrom = readNumber(query.get('created_from'));
  const createdTo = readNumber(query.get('created_to'));
  const limit = readNumber(query.get('limit')) ?? PAGE_SIZE;
  const numbers = [createdFrom, createdTo, limit];
  if (numbers.some(Number.isNaN) || limit < 1 || limit > PAGE_SIZE) return null;
  if (reference === null && createdFrom === null) return null;
  const startingAfter = query.get('starting_after');
  return {
    form: 'payout',
    reference,
    details: {},
    createdFrom,
    createdTo,
    startingAfter,
    limit,
    newestFirst: false,
  };
}

/** null: absent. NaN: no whole number. */
export function readNumber(text: string | null): number | null {
  if (text === null) return null;
  return /^\d{1,12}$/.test(text) ? Number(text) : NaN;
}
