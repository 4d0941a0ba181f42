import { describe, expect, it } from 'vitest';
import { DomainError, PROBLEM_CODES, PROBLEMS } from '../../../src/domain/domain-error.js';
import { problemAnswer } from '../../../src/http/problem.js';
import { Problem } from '../../../src/payments/schemas/problem.schema.js';

const ID = '019b1f0a-0000-7000-8000-000000000000';

describe('a problem', () => {
  it('of every code fits the published schema and holds the members of RFC 9457', () => {
    for (const code of PROBLEM_CODES) {
      const answer = problemAnswer(new DomainError(code), ID, () => 0);
      const body = Problem.parse(JSON.parse(answer.body));
      expect(body).toMatchObject({ type: `urn:problem:${code}`, code, status: PROBLEMS[code].status });
      expect(body.instance).toBe(`urn:request:${ID}`);
      expect(answer.status).toBe(PROBLEMS[code].status);
      expect(answer.headers['Content-Type']).toBe('application/problem+json');
    }
  });

  it('leaves out what does not concern it', () => {
    const { body } = problemAnswer(new DomainError('not_found'), ID, () => 0);
    expect(Object.keys(JSON.parse(body) as object).sort()).toEqual(
      ['code', 'detail', 'instance', 'request_id', 'retryable', 'status', 'title', 'type'].sort(),
    );
  });

  it('cannot be made to say something else by further members', () => {
    const error = new DomainError('payment_final', { state: 'failed', extra: { outcome: 'x', state: 'y' } });
    expect(JSON.parse(problemAnswer(error, ID, () => 0).body)).toMatchObject({
      state: 'failed',
      outcome: 'x',
    });
  });

  it('asks to wait on every 429 and 503 and on the retryable 409, and on nothing else', () => {
    for (const code of PROBLEM_CODES) {
      const { status, headers } = problemAnswer(new DomainError(code), ID, () => 0);
      const due = status === 429 || status === 503 || code === 'idempotency_key_in_use';
      expect([code, headers['Retry-After'] !== undefined]).toEqual([code, due]);
    }
  });

  it('spreads the wait upwards from the time asked for, in whole seconds', () => {
    const waitFor = (retryAfterS: number, random: number): string | undefined =>
      problemAnswer(new DomainError('rate_limited', { retryAfterS }), ID, () => random).headers[
        'Retry-After'
      ];
    expect([0, 0.5, 0.999].map((random) => waitFor(10, random))).toEqual(['10', '13', '15']);
    expect(waitFor(0, 0)).toBe('1');
    expect(waitFor(0.2, 0.999)).toBe('2');
    expect(waitFor(2.1, 0)).toBe('3');
  });
});
