import { BadRequestException, ForbiddenException, HttpException, NotFoundException } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/domain/domain-error.js';
import { translateError, type RequestFacts } from '../../../src/http/translate-error.js';
import { LockTimeout, OutcomeUnknown, StorageUnavailable } from '../../../src/persistence/database-errors.js';

const routed: RequestFacts = {
  method: 'POST',
  hasBegun: true,
  isComplete: true,
  isUnrouted: false,
  allowedMethods: [],
};
const coded = (code: string, statusCode?: number): Error =>
  Object.assign(new Error('secret'), { code, statusCode });
const codeOf = (thrown: unknown, request: RequestFacts = routed): string =>
  translateError(thrown, request).code;

describe('the table from thrown things to problems', () => {
  it('hands on a refusal of the domain as it is', () => {
    const error = new DomainError('payment_final', { state: 'failed', version: 3 });
    expect(translateError(error, routed)).toBe(error);
  });

  it.each([
    [new StorageUnavailable('x'), 'storage_unavailable'],
    [new LockTimeout('x'), 'storage_unavailable'],
    [new OutcomeUnknown('x'), 'outcome_unknown'],
  ])('translates the storage fault %s', (thrown, code) => {
    expect(codeOf(thrown)).toBe(code);
  });

  it.each(['22003', '22P02', '22P05', '22021', '22007', '54000'])(
    'SQLSTATE %s is a value that cannot be stored, also when wrapped',
    (state) => {
      expect(codeOf(coded(state))).toBe('value_out_of_range');
      expect(codeOf(Object.assign(new Error('x'), { driverError: coded(state) }))).toBe('value_out_of_range');
    },
  );

  it.each(['23505', '23514', '42P01', '40001', 'XX000', '220031', 'ECONNREFUSED', 'ERR_ASSERTION'])(
    'code %s is not understood and is an internal fault',
    (code) => {
      expect(codeOf(coded(code))).toBe('internal');
    },
  );

  it.each([
    ['FST_ERR_CTP_BODY_TOO_LARGE', 413, 'payload_too_large'],
    ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 415, 'unsupported_media_type'],
    ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 400, 'malformed_request'],
    ['FST_ERR_BAD_URL', 400, 'malformed_url'],
    ['FST_ERR_MAX_PARAM_LENGTH', 414, 'uri_too_long'],
    ['FST_ERR_REP_INVALID_PAYLOAD_TYPE', 500, 'internal'],
    ['ECONNRESET', 400, 'malformed_request'],
  ])("Fastify's %s (%i) is %s", (code, status, expected) => {
    expect(codeOf(coded(code, status))).toBe(expected);
  });

  it('a status on an error that no framework made is not believed', () => {
    expect(codeOf(Object.assign(new Error('x'), { statusCode: 404 }))).toBe('internal');
    expect(codeOf(coded('SOME_SDK', 404))).toBe('internal');
  });

  it('a handler that ran out of time changed nothing when it only reads or never began, else nobody knows', () => {
    const timeout = coded('FST_ERR_HANDLER_TIMEOUT', 503);
    const waiting = { ...routed, hasBegun: false };
    expect(codeOf(timeout, routed)).toBe('outcome_unknown');
    expect(codeOf(timeout, { ...routed, method: 'GET' })).toBe('overloaded');
    expect(codeOf(timeout, waiting)).toBe('overloaded');
    expect(codeOf(timeout, { ...waiting, isComplete: false })).toBe('request_timeout');
    // However incomplete a request looks: once it has begun, nobody knows.
    expect(codeOf(timeout, { ...routed, isComplete: false })).toBe('outcome_unknown');
  });

  it("Nest's own exceptions count by their status", () => {
    expect(codeOf(new ForbiddenException('secret'))).toBe('forbidden');
    expect(codeOf(new BadRequestException('secret'))).toBe('malformed_request');
    expect(codeOf(new HttpException('secret', 418))).toBe('internal');
    expect(codeOf(new NotFoundException('secret'))).toBe('not_found');
  });

  it('a missing route is 405 when the path has other methods, else 404', () => {
    const unrouted = { ...routed, method: 'PUT', isUnrouted: true, allowedMethods: ['GET'] };
    expect(codeOf(new NotFoundException(), unrouted)).toBe('method_not_allowed');
    expect(codeOf(new NotFoundException(), { ...unrouted, allowedMethods: [] })).toBe('route_not_found');
    expect(codeOf(new NotFoundException(), { ...unrouted, method: 'GET' })).toBe('route_not_found');
  });

  it.each([[undefined], [null], ['text'], [5], [{}], [new Error('x')]])(
    '%s is an internal fault with its cause',
    (thrown) => {
      const error = translateError(thrown, routed);
      expect(error.code).toBe('internal');
      expect(error.cause).toBe(thrown);
    },
  );
});
