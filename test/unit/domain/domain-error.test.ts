import { describe, expect, it } from 'vitest';
import { DomainError, PROBLEM_CODES, PROBLEMS } from '../../../src/domain/domain-error.js';

describe('the problem catalogue', () => {
  it('names every code in lower case with underscores and explains it in a sentence', () => {
    for (const code of PROBLEM_CODES) {
      expect(code).toMatch(/^[a-z]+(_[a-z0-9]+)*$/);
      expect(PROBLEMS[code].detail).toMatch(/\.$/);
      expect(PROBLEMS[code].title.length).toBeGreaterThan(3);
    }
  });

  it('holds the codes that clients are promised, with their status', () => {
    const promised = {
      idempotency_key_in_use: 409,
      idempotency_key_reused: 422,
      idempotency_key_missing: 400,
      execute_at_in_past: 422,
      beyond_horizon: 422,
      submission_started: 409,
      payment_final: 409,
      not_applicable: 409,
      version_mismatch: 412,
      if_match_required: 428,
      recovery_hold: 503,
      outcome_unknown: 503,
      storage_unavailable: 503,
      rate_limited: 429,
    } as const;
    for (const [code, status] of Object.entries(promised)) {
      expect(PROBLEMS[code as keyof typeof promised].status).toBe(status);
    }
  });

  it('calls retryable what may succeed unchanged: 408, 429, 503 and one 409, nothing else', () => {
    const retryable = PROBLEM_CODES.filter((code) => PROBLEMS[code].retryable);
    const expected = PROBLEM_CODES.filter(
      (code) => [408, 429, 503].includes(PROBLEMS[code].status) || code === 'idempotency_key_in_use',
    );
    expect(retryable).toEqual(expected);
  });
});

describe('a domain error', () => {
  it('carries state, version and cause, and says only its code', () => {
    const cause = new Error('secret');
    const error = new DomainError('submission_started', {
      state: 'unknown',
      version: 7,
      extra: { outcome: 'unknown' },
      cause,
    });
    expect(error).toMatchObject({
      code: 'submission_started',
      status: 409,
      state: 'unknown',
      version: 7,
      cause,
    });
    expect(error.message).toBe('submission_started');
    expect(error).toBeInstanceOf(Error);
  });
});
