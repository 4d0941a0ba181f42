import { START_LEAD_MS } from '../domain/start-lead.js';
import type { Invariant } from './invariant.js';

/** Later than this somebody must hear of it (s): arming, sweep and a turn in the lane fit in. */
const LATENESS_LIMIT_S = 120;

/** `wake_after` is where a payment that waits for its lane's turn says until when it waits. */
const DUE_IS_STARTED: Invariant = {
  id: 11,
  title: 'no payment waits past execute_at and its turn in an open lane',
  scoped: false,
  text: () => `
    SELECT p.id FROM lane l JOIN payment p ON p.lane = l.lane AND p.state = 'scheduled'
     WHERE NOT l.paused AND l.wait_until IS NULL AND l.breaker = 'closed'
       AND p.execute_at < clock_timestamp() - interval '${LATENESS_LIMIT_S} s'
       AND (p.wake_after IS NULL OR p.wake_after < clock_timestamp() - interval '${LATENESS_LIMIT_S} s')
       AND NOT EXISTS (SELECT 1 FROM setting s WHERE s.name = 'recovery_hold' AND s.value = 'on')`,
};

/** Relays poll four times a second; a row that waits this long (s) has no relay, or no Temporal. */
const OUTBOX_LIMIT_S = 60;

const OUTBOX_MOVES: Invariant = {
  id: 14,
  title: 'no outbox row that may not be put off waits longer than a minute',
  scoped: false,
  text: () => `
    SELECT o.payment_id AS id FROM outbox o
     WHERE o.created_at < clock_timestamp() - interval '${OUTBOX_LIMIT_S} s'
       AND (o.kind <> 'start'
         OR o.due_at - interval '${START_LEAD_MS} ms' < clock_timestamp() - interval '${OUTBOX_LIMIT_S} s')`,
};

/** What must not wait for long. */
export const QUEUE_INVARIANTS: readonly Invariant[] = [DUE_IS_STARTED, OUTBOX_MOVES];
