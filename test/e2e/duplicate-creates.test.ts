import { afterAll, beforeAll, expect, it } from 'vitest';
import { Rig, type Answer } from '../support/rig.js';

const KEYS = 100;
const POSTS = 20;
/** Of the 20 posts of a key these two ask for something else. */
const OTHER = [6, 13];

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start({ apis: 2 });
});
afterAll(() => rig.stop());

it('100 keys posted 20 times at once over two APIs, 2 of each with another body: one payment each (ID-01)', async () => {
  const due = rig.secondAfter(12_000);
  const executeAt = new Date(due).toISOString();
  let inUse = 0;
  /** On a busy machine a create may wait over 2 s for its twin: 409 with Retry-After, and it is repeated. */
  const post = async (k: number, n: number): Promise<Answer> => {
    const answer = await postOnce(k, n);
    if (answer.body['code'] !== 'idempotency_key_in_use') return answer;
    inUse++;
    return post(k, n);
  };
  const postOnce = (k: number, n: number): Promise<Answer> =>
    rig.call('POST', '/v1/payments', {
      api: n % 2,
      headers: { 'idempotency-key': `twin-${k}` },
      body: {
        amount: OTHER.includes(n) ? 999_999 : 1_000 + k,
        currency: 'EUR',
        destination: `acct_${k}`,
        execute_at: executeAt,
      },
    });
  const all = await Promise.all(
    Array.from({ length: KEYS }, (_, k) => Promise.all(Array.from({ length: POSTS }, (_, n) => post(k, n)))),
  );
  const ids: string[] = [];
  for (const answers of all) {
    const created = answers.filter((a) => a.status === 201);
    expect(created).toHaveLength(1);
    const winner = created[0]?.body as { id: string; amount: number };
    ids.push(winner.id);
    answers.forEach((answer, n) => {
      const sameBody = OTHER.includes(n) === (winner.amount === 999_999);
      if (answer.status === 201) return;
      expect(answer.status).toBe(sameBody ? 200 : 422);
      if (sameBody) expect(answer.body['id']).toBe(winner.id);
      else expect(answer.body['code']).toBe('idempotency_key_reused');
    });
  }
  console.log(`duplicates: ${inUse} answers said that the key was in use`);
  expect(new Set(ids).size).toBe(KEYS);
  await rig.provider.expect(Object.fromEntries(ids.map((id) => [id, due])));
  await rig.untilFinal(ids, due);
  await rig.judge(ids);
});
