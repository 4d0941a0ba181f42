import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FAR_HORIZON, inHours, startTestApi, type Client, type TestApi } from '../support/api.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let db: TestDatabase;
let api: TestApi;
let client: Client;

beforeAll(async () => {
  db = await createTestDatabase();
  api = await startTestApi({ database: db.database, env: FAR_HORIZON });
  client = await api.client();
});
afterAll(async () => {
  await api.close();
  await db.drop();
});

/** Within the far horizon of these tests, and far from any day on which they run. */
const year = 2090;
const countRows = async (): Promise<number> =>
  (
    await db.query<{ n: number }>('SELECT count(*)::integer AS n FROM payment WHERE tenant_id = $1', [
      client.tenant,
    ])
  )[0]?.n ?? -1;

describe('a day that does not exist', () => {
  it.each(['2027-02-30', '2027-02-29', '2026-11-31', '2027-13-01', '2027-00-10', '2027-01-00', '2027-04-31'])(
    '%s is 400 and rolls over to no other day (TM-02)',
    async (day) => {
      const before = await countRows();
      const answer = await client.create({ execute_at: `${day}T10:00:00Z` });
      expect([answer.status, answer.body.errors]).toEqual([
        400,
        [{ pointer: '/execute_at', code: 'malformed' }],
      ]);
      expect(await countRows()).toBe(before);
    },
  );

  it('is told from the leap day, which reads back as sent (TM-02)', async () => {
    const answer = await client.create({ execute_at: '2088-02-29T10:00:00Z' });
    expect([answer.status, answer.body.execute_at]).toEqual([201, '2088-02-29T10:00:00.000000Z']);
  });
});

describe('one form of time and no other', () => {
  it.each([
    '2026-W49', '2026-335', '2026-12-01', '1', 'Dec 1 2026', `${year}-03-01T10:00:00Z `, ` ${year}-03-01T10:00:00Z`,
    `${year}-03-01T10:00:00Zxyz`, `${year}-03-01t10:00:00Z`, `${year}-03-01T10:00:00z`, `${year}-03-01 10:00:00Z`,
    `${year}-03-01T10:00:00.1234567Z`, `${year}-03-01T10:00:00.123456789Z`, `${year}-03-01T10:00:00.Z`,
    `${year}-03-01T10:00:00+0100`, `${year}-03-01T10:00:00+01`, `${year}-03-01T10:00Z`, `${year}-03-01T10:00:00`,
    `${year}0301T100000Z`, `+${year}-03-01T10:00:00Z`, 'infinity', '-infinity', 'today', 'NOW', ' now', '',
    '10000-01-01T00:00:00Z', '9999-12-31T23:59:59-01:00', '0000-12-31T23:59:59Z',
  ])('%j is 400 (TM-03, TM-07)', async (text) => {
    const answer = await client.create({ execute_at: text });
    expect([answer.status, answer.body.code], answer.text).toEqual([400, 'validation_failed']);
    const deadline = await client.create({ not_after: text });
    expect([deadline.status, deadline.body.code], deadline.text).toEqual([400, 'validation_failed']);
  }); // prettier-ignore

  it.each([1_800_000_000, 1_800_000_000_000, 1_800_000_000_000_000, '1800000000', 0, null, true, [], {}])(
    'a number or another type, %j, is 400 and means no unit (TM-05)',
    async (value) => {
      const answer = await client.create({ execute_at: value });
      expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    },
  );
});

describe('an offset', () => {
  it.each([
    ['+14:00', `${year}-02-28T20:00:00.000000Z`],
    ['+14:01', `${year}-02-28T19:59:00.000000Z`],
    ['-12:00', `${year}-03-01T22:00:00.000000Z`],
    ['+23:59', `${year}-02-28T10:01:00.000000Z`],
    ['-00:00', `${year}-03-01T10:00:00.000000Z`],
  ])('of %s is turned to UTC before anything is stored (TM-06)', async (offset, shown) => {
    const answer = await client.create({ execute_at: `${year}-03-01T10:00:00${offset}` });
    expect([answer.status, answer.body.execute_at]).toEqual([201, shown]);
  });

  it.each(['+24:00', '+25:00', '+10:60', '-24:00'])('of %s is 400 (TM-06)', async (offset) => {
    expect((await client.create({ execute_at: `${year}-03-01T10:00:00${offset}` })).status).toBe(400);
  });

  it.each(['24:00:00', '23:59:60', '23:60:00', '25:00:00'])(
    'does not save a clock of %s: 400 (TM-06)',
    async (clock) => {
      expect((await client.create({ execute_at: `${year}-03-01T${clock}Z` })).status).toBe(400);
    },
  );

  it('makes local times exact where clocks are put forward or back (TM-07)', async () => {
    const gap = await client.create({ execute_at: '2090-03-26T02:30:00+01:00' });
    expect([gap.status, gap.body.execute_at]).toEqual([201, '2090-03-26T01:30:00.000000Z']);
    const first = await client.create({ execute_at: '2090-10-29T02:30:00+02:00' });
    const second = await client.create({ execute_at: '2090-10-29T02:30:00+01:00' });
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(Date.parse(second.body.execute_at) - Date.parse(first.body.execute_at)).toBe(3_600_000);
  });
});

describe('the time zone of the process', () => {
  const before = process.env['TZ'];
  afterEach(() => {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  });

  it.each(['Asia/Tokyo', 'America/New_York', 'UTC'])('changes no instant: %s (TM-04)', async (zone) => {
    process.env['TZ'] = zone;
    expect(new Date(0).getHours() === 0).toBe(zone === 'UTC');
    const made = await client.create({ execute_at: `${year}-07-01T10:00:00Z` });
    const [row] = await db.query<{ same: boolean }>(
      `SELECT execute_at = '${year}-07-01 10:00:00+00'::timestamptz AS same FROM payment WHERE id = $1`,
      [made.body.id],
    );
    const read = await client.get(`/v1/payments/${made.body.id}`);
    expect([row?.same, read.body.execute_at]).toEqual([true, `${year}-07-01T10:00:00.000000Z`]);
  });

  it('could only matter to a column without zone, and there is none (TM-04)', async () => {
    const columns = await db.query(
      `SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'public' AND data_type IN ('timestamp without time zone', 'date', 'time without time zone')
          AND table_name <> 'schema_migration'`,
    );
    expect(columns).toEqual([]);
  });
});

describe('microseconds', () => {
  it('are kept through storage and back (TM-04)', async () => {
    const { body } = await client.create({
      execute_at: `${year}-03-01T10:00:00.123456Z`,
      not_after: `${year}-03-01T10:00:00.123457Z`,
    });
    expect([body.execute_at, body.not_after]).toEqual([
      `${year}-03-01T10:00:00.123456Z`,
      `${year}-03-01T10:00:00.123457Z`,
    ]);
  });
});

describe('how far ahead', () => {
  it('is bounded by the horizon, on the database’s clock (TM-01)', async () => {
    const usual = await startTestApi({ database: db.database, keys: api.keys });
    try {
      const at = usual.as(client.key);
      const within = [24 * 24, 25 * 24, 2 ** 31 / 3_600_000, (2 ** 32 + 5_000) / 3_600_000, 365.9 * 24];
      for (const hours of within) {
        const sent = inHours(hours);
        const answer = await at.create({ execute_at: sent });
        expect([answer.status, Date.parse(answer.body.execute_at)]).toEqual([201, Date.parse(sent)]);
      }
      for (const hours of [366.1 * 24, 400 * 24]) {
        const answer = await at.create({ execute_at: inHours(hours) });
        expect([answer.status, answer.body.code]).toEqual([422, 'beyond_horizon']);
      }
    } finally {
      await usual.close();
    }
  });

  it('a time in the past is 422 execute_at_in_past, never "at once" (TM-05)', async () => {
    for (const hours of [-1, -24 * 365, -0.001]) {
      const answer = await client.create({ execute_at: inHours(hours) });
      expect([answer.status, answer.body.code]).toEqual([422, 'execute_at_in_past']);
    }
  });
});
