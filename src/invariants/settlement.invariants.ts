import type { Invariant } from './invariant.js';

/** A payment is booked by its provider within this time; written here again, apart from the import. */
const BOOKING_LAG = `interval '2 days'`;

/**
 * A line without payment has no payment id to be named by: it is named by its provider and the
 * provider's id. The reports of a provider go from the first booking that any file told to the last,
 * and never beyond now.
 */
const BOOKS_AGREE: Invariant = {
  id: 18,
  title: 'every settlement line has its payment, and every succeeded payment its line within two days',
  scoped: true,
  text: (within) => `
    SELECT r.provider || '/' || r.txn_id AS id FROM settlement_row r
     WHERE r.bucket = 'unexpected_at_provider' AND r.payment_id IS NULL
    UNION ALL
    SELECT p.id FROM payment p
      JOIN (SELECT f.provider, min(f.first_booked_at) AS since, least(max(f.last_booked_at), clock_timestamp()) AS cut_off
              FROM settlement_file f WHERE f.finished_at IS NOT NULL GROUP BY f.provider) told
        ON told.provider = p.provider
     WHERE p.state = 'succeeded' AND ${within('p.id')}
       AND p.submission_started_at >= told.since AND p.submission_started_at < told.cut_off - ${BOOKING_LAG}
       AND NOT EXISTS (SELECT 1 FROM settlement_row r WHERE r.payment_id = p.id AND r.kind = 'payment')`,
};

/** What must hold between our payments and the providers' books. */
export const SETTLEMENT_INVARIANTS: readonly Invariant[] = [BOOKS_AGREE];
