import { createInterface } from 'node:readline';
import { Pool } from 'undici';
import { distribution } from '../report/distribution.js';
import { CreateLoad, type CreateLoadResult } from './create-load.js';
import { createBody, createHeaders } from './payment-creator.js';

/** The process of `sendCreates`: a line of orders in, a line of results out; ends with its input. */

const DUE_OVER_MS = 3_600_000;
const ANSWER_WITHIN_MS = 30_000;

async function run(load: CreateLoad): Promise<CreateLoadResult> {
  const pool = new Pool(load.url, {
    connections: load.connections,
    pipelining: 1,
    headersTimeout: ANSWER_WITHIN_MS,
    bodyTimeout: ANSWER_WITHIN_MS,
  });
  const times: number[] = [];
  const refused: Record<string, number> = {};
  const refuse = (why: string): void => void (refused[why] = (refused[why] ?? 0) + 1);
  let number = 0;
  const startedAt = performance.now();
  const endsAt = startedAt + load.seconds * 1_000;
  const connection = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const own = number++;
      const dueAt = load.dueFrom + ((own * 1_009) % DUE_OVER_MS);
      const sentAt = performance.now();
      try {
        const { statusCode, body } = await pool.request({
          method: 'POST',
          path: '/v1/payments',
          headers: createHeaders(load.apiKey, `${load.keyPrefix}-${own}`),
          body: createBody(dueAt, own),
        });
        const content = (await body.json()) as { code?: string };
        if (statusCode === 201) times.push(performance.now() - sentAt);
        else refuse(`${statusCode} ${content.code ?? ''}`.trim());
      } catch {
        refuse('no answer');
      }
    }
  };
  await Promise.all(Array.from({ length: load.connections }, connection));
  const seconds = (performance.now() - startedAt) / 1_000;
  await pool.close();
  return { seconds, accepted: times.length, refused, ...distribution(times) };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(CreateLoad.parse(JSON.parse(line))))}\n`);
}
