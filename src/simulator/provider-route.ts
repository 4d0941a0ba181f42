import type { Operation } from './fault.js';
import { errorAnswer } from './payout-answer.js';
import type { Answer } from './payout-answer.js';
import { readPayoutParameters } from './payout-parameters.js';
import type { Instruction } from './payout-protocol.js';
import type { SimulatedAccount } from './settings.js';

/** What one request asks of the provider. */
export type Wish =
  | {
      readonly kind: 'create' | 'commit';
      readonly account: SimulatedAccount;
      readonly instruction: Instruction;
    }
  | { readonly kind: 'read'; readonly account: SimulatedAccount; readonly id: string }
  | { readonly kind: 'list'; readonly account: SimulatedAccount; readonly reference: string }
  | { readonly kind: 'refused'; readonly answer: Answer };

export interface Understood {
  readonly wish: Wish;
  /** null: the path is none of the protocol's. */
  readonly operation: Operation | null;
  /** The reference named by the request itself; null when it names a payout or nothing. */
  readonly reference: string | null;
  readonly payoutId: string | null;
}

interface Line {
  readonly operation: Operation;
  readonly payoutId: string | null;
  readonly reference: string | null;
}

/**
 * Reads `POST /v1/payouts`, `POST /v1/payouts/{id}/commit` (profile T), `GET /v1/payouts/{id}` and
 * `GET /v1/payouts?reference=`. What is refused still says its reference, so that the log of
 * requests can show it.
 * @param account null: the bearer key is unknown.
 * @param body null: it was too long.
 */
export function understand(
  method: string,
  path: string,
  body: string | null,
  account: SimulatedAccount | null,
): Understood {
  const line = readLine(method, path);
  const parameters = line?.operation === 'submit' && body !== null ? readPayoutParameters(body) : null;
  const reference =
    parameters?.kind === 'parameters' ? parameters.parameters.reference : (line?.reference ?? null);
  const known = { operation: line?.operation ?? null, reference, payoutId: line?.payoutId ?? null };
  const refused = (answer: Answer): Understood => ({ ...known, wish: { kind: 'refused', answer } });

  if (!account) return refused(errorAnswer(401, 'invalid_api_key', 'Unknown API key.'));
  if (!line || (line.operation === 'commit' && account.profile !== 'T')) {
    return refused(errorAnswer(404, 'unknown_path', 'There is nothing here.'));
  }
  if (body === null) return refused(errorAnswer(413, 'body_too_large', 'The body is longer than 64 KiB.'));
  if (parameters?.kind === 'wrong') {
    const message = `The parameter ${parameters.parameter} is missing, malformed or unknown.`;
    return refused(errorAnswer(400, 'parameter_invalid', message));
  }
  if (parameters) {
    return { ...known, wish: { kind: 'create', account, instruction: { ...parameters, kind: 'create' } } };
  }
  if (line.payoutId !== null) {
    const id = line.payoutId;
    return line.operation === 'commit'
      ? { ...known, wish: { kind: 'commit', account, instruction: { kind: 'commit', id } } }
      : { ...known, wish: { kind: 'read', account, id } };
  }
  return { ...known, wish: { kind: 'list', account, reference: line.reference ?? '' } };
}

function readLine(method: string, path: string): Line | null {
  const match = /^\/v1\/payouts(?:\/(\w{1,64})(\/commit)?)?(?:\?(.*))?$/.exec(path);
  if (!match) return null;
  const [, id, commit, query] = match;
  if (method === 'POST' && query === undefined) {
    if (id === undefined) return { operation: 'submit', payoutId: null, reference: null };
    return commit ? { operation: 'commit', payoutId: id, reference: null } : null;
  }
  if (method !== 'GET' || commit) return null;
  if (id !== undefined)
    return query === undefined ? { operation: 'lookup', payoutId: id, reference: null } : null;
  const reference = query === undefined ? null : new URLSearchParams(query).get('reference');
  return reference ? { operation: 'lookup', payoutId: null, reference } : null;
}
