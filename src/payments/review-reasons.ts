/**
 * Reasons of review cases that one more piece of news does not settle, however plain: money may be at
 * two places, or in another amount than instructed. Only two people decide. The news asks first and the
 * gate's own guard (T20) has the last word, so that no way to move a payment passes by.
 */
export const REASONS_FOR_PEOPLE_ALONE: readonly string[] = [
  'found_other',
  'found_many',
  'key_mismatch',
  'contradiction',
  'other_money',
  'other_object',
  'other_generation',
  'unexpected_at_provider',
  'settlement_differs',
];

/** Kinds of evidence that say the same, whatever the case was opened for and whoever filed them. */
const KINDS_FOR_PEOPLE_ALONE = [
  'found_other',
  'found_many',
  'key_mismatch',
  'amount_differs',
  'currency_differs',
] as const;

const list = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(', ');

/** SQL: this reason is for people alone. */
export const isForPeopleAlone = (reason: string): string =>
  `${reason} IN (${list(REASONS_FOR_PEOPLE_ALONE)})`;

/** Guard, as SQL: nothing that is known of the payment keeps its decision to people. */
export const mayBeDecidedByNews = (payment: string): string => `NOT EXISTS (SELECT 1 FROM evidence other
     WHERE other.payment_id = ${payment} AND other.kind IN (${list(KINDS_FOR_PEOPLE_ALONE)}))
   AND NOT EXISTS (SELECT 1 FROM review_case rc
     WHERE rc.payment_id = ${payment} AND rc.closed_at IS NULL AND ${isForPeopleAlone('rc.reason')})`;

/** Kinds of evidence that name other money, or another object, than instructed, with or without amounts. */
export const OTHER_MONEY_KINDS: readonly string[] = [
  'found_other',
  'key_mismatch',
  'amount_differs',
  'currency_differs',
];

/**
 * SQL: the evidence row shows other money than the payment's. Adapters do not say how a foreign object
 * stands, so its status decides nothing; what came back may be a part, and what is inert moved nothing.
 */
export const sawOtherMoney = (seen: string, payment: string): string => `${seen}.kind <> 'returned'
       AND ${seen}.status IS DISTINCT FROM 'inert' AND (${seen}.kind IN (${list(OTHER_MONEY_KINDS)})
         OR ${seen}.observed_amount <> ${payment}.amount OR ${seen}.observed_currency <> ${payment}.currency)`;
