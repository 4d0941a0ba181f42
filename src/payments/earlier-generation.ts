/**
 * True when an evidence row may mean that money moved, or still may: the provider has or had an object
 * of ours, or money came back. Not what it refused, what is inert, or what people decided about it.
 */
const MAY_MEAN_PAID = (seen: string): string => `${seen}.source <> 'person'
  AND (${seen}.status IN ('succeeded', 'pending')
    OR (${seen}.status IS NULL AND (${seen}.source = 'settlement'
      OR ${seen}.kind IN ('accepted', 'found', 'found_other', 'found_many', 'returned'))))`;

/**
 * Guard, as SQL: an earlier generation of the payment may have been paid after all, whatever its proof
 * says, so nothing of the newer one may go out. It asks for no time: two people cannot open a
 * generation over such evidence (the same list, in the judgement of proposals), and a row that was
 * being written while they did would be older than the generation. What names no generation counts.
 * False for the first generation without a look (else index evidence_by_payment).
 * @param payment SQL of the payment's id. @param generation SQL of the generation that would go out.
 */
export function earlierMayHavePaid(payment: string, generation: string): string {
  return `(${generation} > 1 AND EXISTS (SELECT 1 FROM evidence seen WHERE seen.payment_id = ${payment}
     AND coalesce(seen.generation, 0) < ${generation} AND ${MAY_MEAN_PAID('seen')}))`;
}
