import { describe, expect, it } from 'vitest';
import { readCamt053 } from '../../../src/reconciliation/camt053.reader.js';
import { UnusableFile, type Reading } from '../../../src/reconciliation/settlement-line.js';

const ID = `pay_${'b'.repeat(32)}`;
const statement = (entries: string, prefix = ''): string => {
  const p = prefix === '' ? '' : `${prefix}:`;
  const xmlns = prefix === '' ? 'xmlns' : `xmlns:${prefix}`;
  return (
    `<?xml version="1.0" encoding="UTF-8"?>\n<${p}Document ${xmlns}="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">` +
    `<${p}BkToCstmrStmt><${p}Stmt><${p}Id>S1</${p}Id>${entries}</${p}Stmt></${p}BkToCstmrStmt></${p}Document>`
  );
};

const details = (ref: string, text: string, amount = ''): string =>
  `<TxDtls><Refs><AcctSvcrRef>${ref}</AcctSvcrRef><EndToEndId>NOTPROVIDED</EndToEndId></Refs>${amount}` +
  `<RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls>`;

interface EntrySeed {
  readonly amount?: string;
  readonly currency?: string;
  readonly direction?: string;
  readonly status?: string;
  readonly extra?: string;
  readonly ref?: string;
  readonly details?: string;
}
const entry = (seed: EntrySeed = {}): string =>
  `<Ntry><NtryRef>1</NtryRef><Amt Ccy="${seed.currency ?? 'EUR'}">${seed.amount ?? '19.99'}</Amt>` +
  `<CdtDbtInd>${seed.direction ?? 'DBIT'}</CdtDbtInd>${seed.extra ?? ''}` +
  `<Sts>${seed.status ?? '<Cd>BOOK</Cd>'}</Sts><BookgDt><Dt>2027-03-01</Dt></BookgDt>` +
  `<ValDt><Dt>2027-03-02</Dt></ValDt><AcctSvcrRef>${seed.ref ?? 'B1'}</AcctSvcrRef>` +
  `<NtryDtls>${seed.details ?? details('T1', `Payment ${ID}/1 March`)}</NtryDtls></Ntry>`;

async function* inChunks(text: string, size: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}
async function read(text: string, chunk = 65_536): Promise<readonly Reading[]> {
  const readings: Reading[] = [];
  for await (const portion of readCamt053(inChunks(text, chunk))) readings.push(...portion);
  return readings;
}

describe('a bank statement (camt.053)', () => {
  it('gives one line for a booked debit, with our reference out of the remittance information', async () => {
    const [reading] = await read(statement(entry()));
    expect(reading).toEqual({
      kind: 'line',
      line: {
        rowNo: 1, txnId: 'T1', sourceId: null, reference: `${ID}/1`, paymentId: ID, generation: 1, kind: 'payment',
        grossMinor: -1_999n, feeMinor: 0n, netMinor: -1_999n, currency: 'EUR', bookedAt: '2027-03-01T00:00:00Z',
        availableAt: '2027-03-02T00:00:00Z', batch: '1',
      },
    }); // prettier-ignore
  });

  it('keeps amounts as text: no digit is lost to a float', async () => {
    const [reading] = await read(statement(entry({ amount: '9007199254740.93' })));
    expect(reading).toMatchObject({ line: { grossMinor: -900_719_925_474_093n } });
  });

  it('reads prefixed names, older status words, comments, CDATA and any chunks alike', async () => {
    const commented = `<!-- <Ntry><Amt Ccy="EUR">1</Amt></Ntry> -->${entry({ status: 'BOOK' })}`;
    const cdata = entry({ ref: 'B2', details: details('T2', `<![CDATA[${ID}/2]]>`) });
    const whole = await read(statement(commented + cdata));
    expect(whole.map((r) => (r.kind === 'line' ? [r.line.txnId, r.line.generation] : r.reason))).toEqual([
      ['T1', 1],
      ['T2', 2],
    ]);
    for (const size of [1, 5, 33]) expect(await read(statement(commented + cdata), size)).toEqual(whole);
    const prefixed = statement(entry(), 'ns').replaceAll(/<(\/?)(?!\/|ns:|\?|!)/g, '<$1ns:');
    expect(await read(prefixed)).toEqual(await read(statement(entry())));
  });

  it('tells returns and other credits, charges, and what is only announced, from payments', async () => {
    const returned = entry({
      direction: 'CRDT',
      ref: 'B3',
      details:
        `<TxDtls><Refs><AcctSvcrRef>T3</AcctSvcrRef></Refs><RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>` +
        `<RmtInf><Ustrd>${ID}/1</Ustrd></RmtInf></TxDtls>`,
    });
    const credit = entry({ direction: 'CRDT', ref: 'B4', details: details('T4', 'from a customer') });
    const flipped = entry({ direction: 'CRDT', ref: 'B7', details: details('T7', `${ID}/1`) });
    const charge = entry({
      ref: 'B5',
      details: details('T5', 'monthly'),
      extra:
        '<BkTxCd><Domn><Cd>ACMT</Cd><Fmly><Cd>MDOP</Cd><SubFmlyCd>CHRG</SubFmlyCd></Fmly></Domn></BkTxCd>',
    });
    const pending = entry({ status: '<Cd>PDNG</Cd>', ref: 'B6' });
    const lines = await read(statement(returned + credit + charge + pending + flipped));
    expect(
      lines.map((r) =>
        r.kind === 'line' ? `${r.line.txnId} ${r.line.kind} ${r.line.grossMinor}` : r.reason,
      ),
    ).toEqual(['T3 return 1999', 'T4 other 1999', 'T5 other -1999', 'T7 payment 1999']);
  });

  it('splits a batch booking into its transactions, and refuses all of one that does not add up', async () => {
    const part = (ref: string, amount: string): string =>
      details(ref, `${ID}/1`, `<Amt Ccy="EUR">${amount}</Amt>`);
    const good = entry({ amount: '30.00', details: part('A', '10.00') + part('B', '20.00') });
    const bad = entry({ amount: '31.00', ref: 'B9', details: part('C', '10.00') + part('D', '20.00') });
    const readings = await read(
      statement(good + bad + entry({ ref: 'B8', details: details('E', `${ID}/1`) })),
    );
    expect(
      readings.map((r) =>
        r.kind === 'line' ? `${r.line.rowNo} ${r.line.txnId}` : `${r.rowNo} !${r.reason}`,
      ),
    ).toEqual(['1 A', '2 B', '3 !sum', '4 !sum', '5 E']);
  });

  it.each([
    ['an amount that is none', entry({ amount: '19,99' }), 'amount'],
    ['a negative amount', entry({ amount: '-19.99' }), 'amount'],
    ['a currency that is none', entry({ currency: 'EURO' }), 'amount'],
    ['no direction', entry({ direction: 'BOTH' }), 'kind'],
    [
      'no reference of the bank',
      entry({ ref: '', details: '' }).replace('<NtryRef>1</NtryRef>', ''),
      'txn_id',
    ],
    ['a date that does not exist', entry().replace('2027-03-01', '2027-02-30'), 'time'],
  ])('reports %s by its row', async (_, broken, reason) => {
    const readings = await read(
      statement(entry({ ref: 'B0', details: details('T0', `${ID}/1`) }) + broken + entry()),
    );
    expect(readings.map((r) => r.kind)).toEqual(['line', 'unreadable', 'line']);
    expect(readings[1]).toEqual({ kind: 'unreadable', rowNo: 2, reason });
  });

  it.each([
    ['no XML', 'provider_txn_id,source_id\n'],
    ['another root', '<Invoice><Ntry/></Invoice>'],
    ['a document type', `<!DOCTYPE Document [<!ENTITY x "1">]>${statement(entry())}`],
    ['an entity of its own', statement(entry({ amount: '&x;' }))],
    ['nothing', ''],
  ])('is refused with %s', async (_, text) => {
    await expect(read(text)).rejects.toBeInstanceOf(UnusableFile);
  });

  it('that ends early gives the rows before its end, and then says so', async () => {
    const text = statement(entry() + entry({ ref: 'B2', details: details('T2', `${ID}/1`) }));
    const source = readCamt053(inChunks(text.slice(0, text.indexOf('T2')), 64));
    const seen: Reading[] = [];
    const drain = async (): Promise<void> => {
      for await (const portion of source) seen.push(...portion);
    };
    await expect(drain()).rejects.toBeInstanceOf(UnusableFile);
    expect(seen).toHaveLength(1);
  });
});
