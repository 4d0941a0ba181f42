import { describe, expect, it } from 'vitest';
import { readCsvSettlement } from '../../../src/reconciliation/csv-settlement.reader.js';
import {
  UnusableFile,
  type Reading,
  type SettlementLine,
} from '../../../src/reconciliation/settlement-line.js';

const HEADER = 'provider_txn_id,source_id,our_reference,kind,gross,fee,net,currency,booked,available,batch';
const ID = `pay_${'a'.repeat(32)}`;
const row = (txn: string, changed: Partial<Record<string, string>> = {}): string => {
  const fields = {
    txn, source: `po_${txn}`, reference: `${ID}/1`, kind: 'payment', gross: '-19.99', fee: '0.25', net: '-20.24',
    currency: 'EUR', booked: '2027-03-01T09:00:00Z', available: '2027-03-02T09:00:00Z', batch: 'b1', ...changed,
  }; // prettier-ignore
  return Object.values(fields).join(',');
};

async function* inChunks(text: string, size: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}

async function read(text: string, chunk = 65_536): Promise<readonly Reading[]> {
  const readings: Reading[] = [];
  for await (const portion of readCsvSettlement(inChunks(text, chunk))) readings.push(...portion);
  return readings;
}

const short = (readings: readonly Reading[]): readonly string[] =>
  readings.map((r) => (r.kind === 'line' ? `${r.line.rowNo} ${r.line.txnId}` : `${r.rowNo} !${r.reason}`));

describe('an itemized balance activity file', () => {
  it('gives exact lines: minor units by the exponent, our reference taken apart', async () => {
    const [reading] = await read(`${HEADER}\n${row('t1')}\n`);
    expect(reading).toEqual({
      kind: 'line',
      line: {
        rowNo: 1, txnId: 't1', sourceId: 'po_t1', reference: `${ID}/1`, paymentId: ID, generation: 1, kind: 'payment',
        grossMinor: -1_999n, feeMinor: 25n, netMinor: -2_024n, currency: 'EUR', bookedAt: '2027-03-01T09:00:00Z',
        availableAt: '2027-03-02T09:00:00Z', batch: 'b1',
      } satisfies SettlementLine,
    }); // prettier-ignore
  });

  it('reads currencies without and with three decimal digits', async () => {
    const yen = row('y', { gross: '-500', fee: '1', net: '-501', currency: 'JPY' });
    const dinar = row('k', { gross: '-1.234', fee: '0.000', net: '-1.234', currency: 'KWD' });
    const lines = (await read(`${HEADER}\n${yen}\n${dinar}\n`)).map((r) =>
      r.kind === 'line' ? r.line.grossMinor : null,
    );
    expect(lines).toEqual([-500n, -1_234n]);
  });

  it('may have a byte order mark, carriage returns, blank lines, no last line feed and columns in any order', async () => {
    const names = HEADER.split(',').reverse();
    const fields = row('t1').split(',').reverse();
    const [mark] = await read(`${names.join(',')}\r\n\r\n${fields.join(',')}`);
    expect(mark).toMatchObject({ kind: 'line', line: { txnId: 't1', grossMinor: -1_999n, rowNo: 1 } });
  });

  it('may quote fields, with separators, quotes and line feeds inside', async () => {
    const noisy = `${row('t1').replace('b1', '"a, ""b""\nc"')}\n${row('t2')
      .split(',')
      .map((f) => `"${f}"`)
      .join(',')}\n${row('t3')}\n`;
    const readings = await read(`${HEADER}\n${noisy}`);
    expect(short(readings)).toEqual(['1 t1', '2 t2', '3 t3']);
    expect(readings[0]).toMatchObject({ line: { batch: 'a, "b"\nc' } });
  });

  it('reads the same however the file falls into chunks', async () => {
    const text = `${HEADER}\r\n${row('t1')}\r\n"broken${row('t2')}\r\n${row('t3').replace('b1', '"x\ny"')}\r\n${row('t4')}\r\n`;
    const whole = await read(text);
    expect(short(whole)).toEqual(['1 t1', '2 !quotes', '3 t3', '4 t4']);
    for (const size of [1, 2, 3, 7, 64, 150]) expect(await read(text, size)).toEqual(whole);
  });

  it('reports a truncated last line and keeps everything before it', async () => {
    const text = `${HEADER}\n${row('t1')}\n${row('t2').slice(0, 40)}`;
    expect(short(await read(text))).toEqual(['1 t1', '2 !truncated']);
    expect(short(await read(`${HEADER}\n${row('t1')}\n${row('t2').slice(0, 40)}\n${row('t3')}`))).toEqual([
      '1 t1',
      '2 !columns',
      '3 t3',
    ]);
  });

  it.each([
    ['a stray quote', `"${row('x')}`, 'quotes'],
    ['two columns too many', `${row('x')},a,b`, 'columns'],
    ['text after a closed quote', row('x').replace('po_x', '"po"_x'), 'quotes'],
    ['no id', row(''), 'txn_id'],
    ['an id longer than any', row('x'.repeat(256)), 'txn_id'],
    ['a kind that nobody knows', row('x', { kind: 'mystery' }), 'kind'],
    ['a kind that is a name of JavaScript', row('x', { kind: 'constructor' }), 'kind'],
    ['a currency in lower case', row('x', { currency: 'eur' }), 'currency'],
    ['a currency that is none', row('x', { currency: 'XXX' }), 'currency'],
    ['an amount with an exponent', row('x', { gross: '-1e3' }), 'amount'],
    ['half a cent', row('x', { gross: '-19.995' }), 'amount'],
    ['half a yen', row('x', { currency: 'JPY', gross: '-1.5', fee: '0', net: '-1.5' }), 'amount'],
    ['no fee', row('x', { fee: '' }), 'amount'],
    ['a day that does not exist', row('x', { booked: '2027-02-30' }), 'time'],
    ['no booking', row('x', { booked: '' }), 'time'],
    ['bytes that are no UTF-8', row('x', { batch: '\uFFFD' }), 'encoding'],
    ['a NUL', row('x', { batch: 'a\0b' }), 'encoding'],
    ['a line without end', row('x', { batch: 'y'.repeat(200_000) }), 'too_long'],
  ])('reports %s by its row and takes no neighbour with it', async (_, broken, reason) => {
    const text = `${HEADER}\n${row('t1')}\n${broken}\n${row('t3')}\n${row('t4')}\n`;
    const expected = ['1 t1', `2 !${reason}`, '3 t3', '4 t4'];
    expect(short(await read(text))).toEqual(expected);
    expect(short(await read(text, 100))).toEqual(expected);
  });

  it('keeps rows between two stray quotes that would pair up', async () => {
    const text = [HEADER, row('t1'), `"${row('t2')}`, row('t3'), `"${row('t4')}`, row('t5'), ''].join('\n');
    expect(short(await read(text))).toEqual(['1 t1', '2 !quotes', '3 t3', '4 !quotes', '5 t5']);
  });

  it.each([
    ['nothing', ''],
    ['another header', 'a,b,c\n1,2,3\n'],
    ['a header without the net column', `${HEADER.replace(',net', '')}\n`],
    ['a column twice', `${HEADER},gross\n`],
    ['a spreadsheet', 'PK\u0003\u0004\u0014\0\n'],
  ])('is refused with %s: nothing in it can be believed', async (_, text) => {
    await expect(read(text)).rejects.toBeInstanceOf(UnusableFile);
  });

  it("may be Stripe's report, with its names, its lower-case currency and its own payouts", async () => {
    const header =
      'balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,source_id,' +
      'description,automatic_payout_id,transfer_metadata[payment_id],transfer_metadata[generation]';
    const text = [
      header,
      `txn_1,2027-03-01 09:00:00,2027-03-03 00:00:00,eur,-19.99,0.00,-19.99,transfer,tr_1,"Rent, March",,${ID},1`,
      `txn_2,2027-03-01 10:00:00,2027-03-03 00:00:00,eur,-500.00,0.00,-500.00,payout,po_1,sweep,po_1,,`,
    ].join('\n');
    const lines = (await read(text)).map((r) => (r.kind === 'line' ? r.line : null));
    expect(lines[0]).toMatchObject({
      kind: 'payment',
      paymentId: ID,
      generation: 1,
      currency: 'EUR',
      sourceId: 'tr_1',
    });
    expect(lines[1]).toMatchObject({ kind: 'other', paymentId: null, reference: null });
  });
});
