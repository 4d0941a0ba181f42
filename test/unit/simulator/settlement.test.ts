import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decimalText } from '../../../src/simulator/settlement/decimal-text.js';
import { BODY, HttpSimulator, TOKEN } from '../../support/simulator-http.js';

let simulator: HttpSimulator;
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'settlement-'));
  simulator = await HttpSimulator.start();
});
afterEach(() => {
  simulator.close();
  rmSync(folder, { recursive: true, force: true });
});

async function get(path: string): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${simulator.controlUrl}${path}`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  return { status: response.status, text: await response.text() };
}
type Row = Readonly<Record<string, string>>;
function rowsOf(text: string): readonly Row[] {
  const [head = '', ...lines] = text.trimEnd().split('\r\n');
  const names = head.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((value, i) => [names[i] ?? '', value])));
}
const settlement = async (query = ''): Promise<readonly Row[]> =>
  rowsOf((await get(`/settlement?account=acct_a${query}`)).text);
const answers = async (query: string): Promise<readonly Row[]> =>
  JSON.parse((await get(`/settlement/answers?account=acct_a${query}`)).text) as Row[];
const pay = (n: number, more: object = {}): Promise<unknown> =>
  simulator.send({ key: `k${n}`, body: { ...BODY, reference: `pay_${n}/1`, ...more } });

describe('AM-01: decimal text', () => {
  it.each([
    [-1999n, 'EUR', '-19.99'],
    [5n, 'EUR', '0.05'],
    [0n, 'EUR', '0.00'],
    [-500n, 'JPY', '-500'],
    [5n, 'KWD', '0.005'],
    [-123456789012n, 'KWD', '-123456789.012'],
  ])('%s %s is %s', (minor, currency, text) => {
    expect(decimalText(minor, currency)).toBe(text);
  });
});

describe('the settlement of the ledger', () => {
  it('has one row per payout that succeeded, with fee and net, and none for what failed or waits', async () => {
    await pay(1);
    await simulator.script('pay_2', 'submit', 'decline');
    await simulator.script('pay_3', 'submit', { kind: 'pending_then_final', afterMs: 3_600_000 });
    await pay(2);
    await pay(3);
    const [row, ...others] = await settlement();
    expect(others).toEqual([]);
    const { payoutId } = (await simulator.effects('pay_1')).charges[0]!;
    expect(row).toMatchObject({
      source_id: payoutId,
      our_reference: 'pay_1/1',
      kind: 'payout',
      gross: '-12.50',
      fee: '0.25',
      net: '-12.75',
      currency: 'EUR',
    });
    await simulator.advanceClock(3_600_000);
    expect((await settlement()).map((entry) => entry['our_reference'])).toEqual(['pay_1/1', 'pay_3/1']);
  });

  it('PR-01: books a return when it comes back, inside the asked span only', async () => {
    await simulator.script('pay_1', 'submit', {
      kind: 'return_after',
      afterMs: 86_400_000,
      returnAmount: 50,
    });
    await pay(1);
    const night = new Date(Date.now() + 3_600_000).toISOString();
    await simulator.advanceClock(86_400_000);
    const rows = await settlement();
    expect(rows.map((row) => [row['kind'], row['gross'], row['fee']])).toEqual([
      ['payout', '-12.50', '0.25'],
      ['return', '0.50', '0.00'],
    ]);
    expect((await settlement(`&to=${night}`)).map((row) => row['kind'])).toEqual(['payout']);
    expect((await settlement(`&from=${night}`)).map((row) => row['kind'])).toEqual(['return']);
  });

  it('says the same rows as a bank statement, the fee as an entry of its own', async () => {
    await pay(1, { currency: 'JPY' });
    const { text } = await get('/settlement?account=acct_a&format=camt053');
    expect(text.match(/<Ntry>/g)).toHaveLength(2);
    expect(text).toContain('<Amt Ccy="JPY">1250</Amt><CdtDbtInd>DBIT</CdtDbtInd>');
    expect(text).toContain('<Amt Ccy="JPY">25</Amt><CdtDbtInd>DBIT</CdtDbtInd>');
    expect(text).toContain('<Ustrd>pay_1/1</Ustrd>');
    expect(text.trimEnd()).toMatch(/<\/Document>$/);
  });

  it('puts one error of each kind in, says which, and says the same when asked again', async () => {
    for (let n = 1; n <= 9; n += 1) await pay(n);
    const honest = await settlement();
    const told = await settlement('&errors=seed:9');
    const sheet = await answers('&errors=seed:9');
    expect(told).toEqual(await settlement('&errors=seed:9'));
    expect(new Set(sheet.map(({ error }) => error)).size).toBe(9);

    const rowsFor = (error: string, rows: readonly Row[]): readonly Row[] => {
      const { reference } = sheet.find((entry) => entry['error'] === error)!;
      return rows.filter((row) => row['our_reference'] === reference);
    };
    const before = (error: string): Row => rowsFor(error, honest)[0]!;
    const after = (error: string): readonly Row[] => rowsFor(error, told);
    expect(after('missing_row')).toEqual([]);
    expect(after('amount_differs')).toEqual([
      { ...before('amount_differs'), gross: '-12.51', net: '-12.76' },
    ]);
    expect(after('currency_differs')[0]!['currency']).toBe('USD');
    expect(after('fee_differs')).toEqual([{ ...before('fee_differs'), fee: '0.32' }]);
    expect(after('duplicate_row')).toEqual([before('duplicate_row'), before('duplicate_row')]);
    expect(new Set(after('unexpected_row').map((row) => row['source_id'])).size).toBe(2);
    expect(after('sign_flip')[0]!['gross']).toBe('12.50');
    expect(after('returned_after_success').map((row) => row['kind'])).toEqual(['payout', 'return']);
    const lateMs = Date.parse(after('late')[0]!['booked']!) - Date.parse(before('late')['booked']!);
    expect(lateMs).toBeGreaterThan(4 * 86_400_000);
    expect(honest).toEqual(await settlement());
  });

  it('the control client asks for the same text and the same sheet', async () => {
    for (let n = 1; n <= 3; n += 1) await pay(n);
    const query = { account: 'acct_a', errors: 'seed:3' };
    expect(rowsOf(await simulator.settlement(query))).toEqual(await settlement('&errors=seed:3'));
    expect(await simulator.settlementAnswers(query)).toEqual(await answers('&errors=seed:3'));
    await expect(simulator.settlement({ account: 'acct_x' })).rejects.toThrow('was refused');
  });

  it('another seed puts the errors elsewhere', async () => {
    for (let n = 1; n <= 9; n += 1) await pay(n);
    const places = async (seed: string): Promise<unknown> =>
      (await answers(`&errors=${seed}:4`)).map((entry) => entry['reference']);
    expect(await places('a')).not.toEqual(await places('b'));
  });

  it.each([
    ['an unknown account', '/settlement?account=acct_x'],
    ['an unreadable time', '/settlement?account=acct_a&from=soon'],
    ['an unknown format', '/settlement?account=acct_a&format=pdf'],
    ['more errors than rows', '/settlement?account=acct_a&errors=1:5'],
  ])('refuses %s', async (_title, path) => {
    expect((await get(path)).status).toBe(400);
  });
});

describe('invented settlements', () => {
  interface Generated {
    readonly paymentsFile: string;
    readonly answersFile: string;
    readonly rows: number;
    readonly errors: Readonly<Record<string, number>>;
  }
  const generate = async (order: object): Promise<Generated> =>
    (await simulator.control('POST', '/settlement/generate', order)) as Generated;
  const lines = (file: string): string[] => readFileSync(file, 'utf8').trimEnd().split(/\r?\n/);

  it('20,000 payouts with 500 errors: rows, truth and answer sheet agree', async () => {
    const file = join(folder, 'large.csv');
    const made = await generate({ rows: 20_000, errors: 500, seed: 7, file });
    const total = Object.values(made.errors).reduce((a, b) => a + b, 0);
    expect(total).toBe(500);
    const {
      missing_row: missing,
      duplicate_row: twice,
      unexpected_row: more,
      returned_after_success: back,
    } = made.errors;
    expect(made.rows).toBe(20_000 - missing! + twice! + more! + back!);
    expect(lines(file)).toHaveLength(made.rows + 1);
    expect(lines(made.paymentsFile)).toHaveLength(20_001);
    const sheet = lines(made.answersFile).map((line) => JSON.parse(line) as Row);
    expect(new Set(sheet.map(({ reference }) => reference)).size).toBe(500);
    expect(lines(made.paymentsFile)[1]).toMatch(/^pay_[a-z2-7]{32}\/1,po_[0-9a-f]{24},\d+,[A-Z]{3},2026-/);
  });

  it('the same order gives the same bytes, another seed others', async () => {
    const bytes = async (name: string, seed: number): Promise<string> => {
      const file = join(folder, name);
      await generate({ rows: 50, errors: 9, seed, file });
      return readFileSync(file, 'utf8');
    };
    expect(await bytes('a.csv', 1)).toBe(await bytes('b.csv', 1));
    expect(await bytes('a.csv', 1)).not.toBe(await bytes('c.csv', 2));
  });

  it.each([
    ['a relative path', { rows: 1, file: 'here.csv' }],
    ['no rows', { rows: 0, file: '/nowhere.csv' }],
    ['more errors than rows', { rows: 1, errors: 2, file: '/nowhere.csv' }],
    ['a folder that is not there', { rows: 1, file: '/not/there/at/all.csv' }],
  ])('refuses %s', async (_title, order) => {
    await expect(generate(order)).rejects.toThrow('was refused');
  });
});
