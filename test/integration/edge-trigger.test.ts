import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { edgeCheckSql, edgeTexts, stepCheckSql } from '../../src/domain/edge-check.js';
import {
  isLegalEdge,
  PAYMENT_STATES,
  TRANSITIONS,
  type PaymentState,
} from '../../src/domain/payment-state.js';
import { EDGE_CHECK, STEP_CHECK } from '../../src/persistence/migrations/1796000000000-history-rules.sql.js';
import { seedLane, seedTenant } from '../support/builders.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { paymentIn } from '../support/payment-states.js';

const CAUSES = [...new Set(TRANSITIONS.flatMap((rule) => rule.causes))];

let db: TestDatabase;
const ids = {} as Record<PaymentState, string>;
beforeAll(async () => {
  db = await createTestDatabase();
  const tenant = await seedTenant(db.database);
  const lane = await seedLane(db.database);
  for (const state of PAYMENT_STATES) ids[state] = await paymentIn(state, db.database, { tenant, lane });
  // Each tries something, says whether it was accepted, and undoes it.
  await db.query(`CREATE FUNCTION try_transition(target text, next_from text, next_to text, next_cause text)
    RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor)
      SELECT id, version + 1, tenant_id, next_from, next_to, next_cause, 'test' FROM payment WHERE id = target;
      RAISE EXCEPTION SQLSTATE 'T0001';
    EXCEPTION WHEN SQLSTATE 'T0001' THEN RETURN true;
              WHEN check_violation THEN RETURN false;
    END $$`);
  await db.query(`CREATE FUNCTION try_head(target text, next_state text, step integer)
    RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE payment SET state = next_state, version = version + step WHERE id = target;
      RAISE EXCEPTION SQLSTATE 'T0001';
    EXCEPTION WHEN SQLSTATE 'T0001' THEN RETURN true;
              WHEN check_violation THEN RETURN false;
    END $$`);
});
afterAll(() => db.drop());

/** What the trigger on transitions accepts, as `from>to:cause`, of every pair of states and every cause. */
async function acceptedTransitions(): Promise<readonly string[]> {
  const rows = await db.query<{ edge: string }>(
    `SELECT f.state || '>' || t.state || ':' || c.cause AS edge
       FROM unnest($1::text[], $2::text[]) f (state, id), unnest($1::text[]) t (state), unnest($3::text[]) c (cause)
      WHERE try_transition(f.id, f.state, t.state, c.cause)`,
    [PAYMENT_STATES, PAYMENT_STATES.map((state) => ids[state]), CAUSES],
  );
  return rows.map((row) => row.edge).sort();
}

describe('the database accepts only edges of the transition table', () => {
  it('for every pair of states and every cause, as transition rows', async () => {
    const fromSomething = edgeTexts().filter((edge) => !edge.startsWith('none>'));
    expect(await acceptedTransitions()).toEqual(fromSomething);
  });

  it('for every first state and every cause', async () => {
    const rows = await db.query<{ edge: string }>(
      `SELECT 'none>' || t.state || ':' || c.cause AS edge FROM unnest($1::text[]) t (state), unnest($2::text[]) c (cause)
        WHERE payment_edge_is_legal(NULL, t.state, c.cause)`,
      [PAYMENT_STATES, CAUSES],
    );
    expect(rows.map((row) => row.edge)).toEqual(['none>scheduled:create']);
  });

  it('for every pair of states of the head row', async () => {
    const rows = await db.query<{ from: PaymentState; to: PaymentState; accepted: boolean }>(
      `SELECT f.state AS "from", t.state AS "to", try_head(f.id, t.state, 1) AS accepted
         FROM unnest($1::text[], $2::text[]) f (state, id), unnest($1::text[]) t (state)`,
      [PAYMENT_STATES, PAYMENT_STATES.map((state) => ids[state])],
    );
    expect(rows).toHaveLength(PAYMENT_STATES.length ** 2);
    for (const { from, to, accepted } of rows) {
      expect({ from, to, accepted }).toEqual({ from, to, accepted: isLegalEdge(from, to) });
    }
  });

  it('with one step of the version at a time, never with none and never alone', async () => {
    const of = async (state: string, step: number): Promise<unknown> =>
      (await db.query(`SELECT try_head($1, $2, $3) AS ok`, [ids.scheduled, state, step]))[0]?.['ok'];
    expect(await of('held', 1)).toBe(true);
    expect(await of('held', 0)).toBe(false);
    expect(await of('held', 2)).toBe(false);
    expect(await of('held', -1)).toBe(false);
    expect(await of('scheduled', 0)).toBe(true);
    const [alone] = await db.query(`SELECT try_head($1, 'held', 1) AS ok`, [ids.held]);
    expect(alone?.['ok']).toBe(false);
  });

  it('and no transition that does not follow the one before, or skips a number', async () => {
    const [wrongFrom] = await db.query(`SELECT try_transition($1, 'held', 'scheduled', 'release') AS ok`, [
      ids.scheduled,
    ]);
    expect(wrongFrom?.['ok']).toBe(false);
    const skip = `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor)
      SELECT id, version + 2, tenant_id, state, 'held', 'hold', 'test' FROM payment WHERE id = $1`;
    await expect(db.query(skip, [ids.scheduled])).rejects.toThrow('does not follow');
    const second = `INSERT INTO payment_transition (payment_id, seq, tenant_id, from_state, to_state, cause, actor)
      SELECT id, 1, tenant_id, NULL, 'scheduled', 'create', 'test' FROM payment WHERE id = $1`;
    await expect(db.query(second, [ids.scheduled])).rejects.toThrow('duplicate key');
  });

  it('by a check that is a frozen copy of what the table generates', () => {
    expect(EDGE_CHECK).toBe(edgeCheckSql());
    expect(STEP_CHECK).toBe(stepCheckSql());
  });

  it('in a session in replica mode too', async () => {
    await expect(
      db.query(
        `SET session_replication_role = replica; UPDATE payment SET state = 'succeeded', version = version + 1;`,
      ),
    ).rejects.toThrow('no transition leads');
  });
});
