import type { TestDatabase } from './database.js';

/**
 * Moves the times of payments into the past, as the owner and past the rules of history: due so many
 * seconds ago, the deadline so many seconds ago (absent: as it was).
 */
export async function plantPast(
  db: Pick<TestDatabase, 'query'>,
  paymentIds: string | readonly string[],
  seconds: { readonly due?: number; readonly deadline?: number },
): Promise<void> {
  const { due = null, deadline = null } = seconds;
  await db.query(`ALTER TABLE payment DISABLE TRIGGER payment_times`);
  await db.query(
    `UPDATE payment SET execute_at = coalesce(clock_timestamp() - $2::double precision * interval '1 s', execute_at),
            not_after = coalesce(clock_timestamp() - $3::double precision * interval '1 s', not_after)
      WHERE id = ANY ($1)`,
    [[paymentIds].flat(), due, deadline],
  );
  await db.query(`ALTER TABLE payment ENABLE ALWAYS TRIGGER payment_times`);
}
