import { describe, expect, it } from 'vitest';
import { AllowedMethods } from '../../../src/http/allowed-methods.js';

const allowed = new AllowedMethods();
allowed.add('/v1/payments', 'POST');
allowed.add('/v1/payments', ['GET', 'HEAD']);
allowed.add('/v1/payments/:id', 'GET');
allowed.add('/v1/payments/:id/cancel', 'POST');
allowed.add('/docs/*', 'GET');

describe('the methods of a path', () => {
  it.each([
    ['/v1/payments', ['GET', 'HEAD', 'POST']],
    ['/v1/payments?limit=1&x=/v1', ['GET', 'HEAD', 'POST']],
    ['/v1/payments/pay_x', ['GET']],
    ['/v1/payments/pay_x/cancel', ['POST']],
    ['/docs/a/b', ['GET']],
    ['/docs/', ['GET']],
    ['/docs', []],
    ['/v1/payments/', []],
    ['/v1/payments//cancel', []],
    ['/v1/payments/x/y', []],
    ['/V1/payments', []],
    ['v1/payments', []],
    ['*', []],
    ['', []],
  ])('of %s are %j', (url, methods) => {
    expect(allowed.of(url)).toEqual(methods);
  });
});
