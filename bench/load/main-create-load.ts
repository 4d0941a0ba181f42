import { createInterface } from 'node:readline';
import { Pool } from 'undici';
import { distribution } from '../report/distribution.js';
import { CreateLoad, type CreateLoadResult } from './create-load.js';
import { createBody, createHeaders } from './payment-creator.js';

/** The process of `sendCreates`: a line of orders in, a line of results out; ends with its input. */

const DUE_OVER_MS = 3_600_000;
const ANSWER_WITHIN_MS = 30_000;
/** How often an open loop looks what is due. */
const PACE_MS = 5;

interface Tally {
  readonly times: number[];
  readonly refused: Record<string, number>;
  withoutRetryAfter: number;
  unsent: number;
}

async function run(load: CreateLoad): Promise<CreateLoadResult> {
  const pool = new Pool(load.url, {
    connections: load.connections,
    pipelining: 1,
    headersTimeout: ANSWER_WITHIN_MS,
    bodyTimeout: ANSWER_WITHIN_MS,
  });
  const tally: Tally = { times: [], refused: {}, withoutRetryAfter: 0, unsent: 0 };
  let number = 0;
  const send = (): Promise<void> => sendOne(pool, load, number++, tally);
  const startedAt = performance.now();
  const endsAt = startedAt + load.seconds * 1_000;
  await (load.perSecond === null
    ? closedLoop(load.connections, endsAt, send)
    : openLoop({ perSecond: load.perSecond, most: load.connections, startedAt, endsAt, tally }, send));
  const seconds = (performance.now() - startedAt) / 1_000;
  await pool.close();
  const { times, ...rest } = tally;
  return { seconds, accepted: times.length, ...rest, ...distribution(times) };
}

/** Each connection sends when the answer before has come. */
async function closedLoop(connections: number, endsAt: number, send: () => Promise<void>): Promise<void> {
  const connection = async (): Promise<void> => {
    while (performance.now() < endsAt) await send();
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

/** Sends at a rate, however slow the answers are. What finds every connection busy is not sent late. */
async function openLoop(
  of: {
    readonly perSecond: number;
    readonly most: number;
    readonly startedAt: number;
    readonly endsAt: number;
    readonly tally: Tally;
  },
  send: () => Promise<void>,
): Promise<void> {
  const underWay = new Set<Promise<void>>();
  let offered = 0;
  for (let now = performance.now(); now < of.endsAt; now = performance.now()) {
    const due = Math.floor(((now - of.startedAt) / 1_000) * of.perSecond);
    for (; offered < due; offered++) {
      if (underWay.size >= of.most) {
        of.tally.unsent++;
        continue;
      }
      const one = send().finally(() => underWay.delete(one));
      underWay.add(one);
    }
    await new Promise((resolve) => setTimeout(resolve, PACE_MS));
  }
  await Promise.all(underWay);
}

async function sendOne(pool: Pool, load: CreateLoad, own: number, tally: Tally): Promise<void> {
  const refuse = (why: string): void => void (tally.refused[why] = (tally.refused[why] ?? 0) + 1);
  const sentAt = performance.now();
  try {
    const { statusCode, headers, body } = await pool.request({
      method: 'POST',
      path: '/v1/payments',
      headers: createHeaders(load.apiKey, `${load.keyPrefix}-${own}`),
      body: createBody(load.dueFrom + ((own * 1_009) % DUE_OVER_MS), own),
    });
    const content = (await body.json()) as { code?: string };
    if (statusCode === 201) return void tally.times.push(performance.now() - sentAt);
    const isLater = statusCode === 429 || statusCode === 503;
    if (isLater && headers['retry-after'] === undefined) tally.withoutRetryAfter++;
    refuse(`${statusCode} ${content.code ?? ''}`.trim());
  } catch {
    refuse('no answer');
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(CreateLoad.parse(JSON.parse(line))))}\n`);
}
