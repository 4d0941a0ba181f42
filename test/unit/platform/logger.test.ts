import { describe, expect, it } from 'vitest';
import { createLogger, type Log } from '../../../src/platform/logger.js';

const PAYMENT = `pay_${'a2'.repeat(16)}`;

function recorder(): { log: Log; lines: Record<string, unknown>[]; raw: string[] } {
  const raw: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const destination = {
    write: (text: string) => {
      raw.push(text);
      lines.push(JSON.parse(text) as Record<string, unknown>);
    },
  };
  return { log: createLogger({ level: 'debug', name: 'test', destination }), lines, raw };
}

describe('a log line', () => {
  it('holds time in UTC, level, process, event and the allowed fields', () => {
    const { log, lines } = recorder();
    log.info({ payment_id: PAYMENT, version: 3, state: 'held', duration_ms: 12.4 }, 'payment_held');
    expect(lines).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        level: 'info',
        name: 'test',
        event: 'payment_held',
        payment_id: PAYMENT,
        version: 3,
        state: 'held',
        duration_ms: 12,
      },
    ]);
  });

  it.each([
    ['a field outside the list', (log: Log) => log.info({ destination: 'SECRET' }, 'x')],
    ['free text in place of an event', (log: Log) => log.info('paid to SECRET')],
    ['text with values put in', (log: Log) => log.info('paid to %s', 'SECRET')],
    ['a binding of a child', (log: Log) => log.child({ reference: 'SECRET' }).info('x')],
    ['a binding of a grandchild', (log: Log) => log.child({}).child({ key: 'SECRET' }).info('x')],
    ['an allowed field of another form', (log: Log) => log.info({ payment_id: 'SECRET' }, 'x')],
    ['an allowed field that holds an object', (log: Log) => log.info({ code: { a: 'SECRET' } }, 'x')],
    ['the message of an error', (log: Log) => log.error(new Error('SECRET'))],
    ['the message of an error beside an event', (log: Log) => log.error({ err: new Error('SECRET') }, 'x')],
    ['an error whose message is one word', (log: Log) => log.error({ err: new Error('secret') })],
    [
      'the cause of an error',
      (log: Log) => log.error({ err: new Error('a', { cause: new Error('SECRET') }) }, 'x'),
    ],
    [
      'a member of an error',
      (log: Log) => log.error({ err: Object.assign(new Error('a'), { detail: 'SECRET' }) }, 'x'),
    ],
    [
      'a message that imitates a stack',
      (log: Log) => log.error({ err: new Error('a\n    at b (SECRET.ts:1:1)\nc') }, 'x'),
    ],
  ])('never holds %s', (_what, write) => {
    const { log, lines, raw } = recorder();
    write(log);
    expect(lines).toHaveLength(1);
    expect(raw.join('')).not.toMatch(/secret/i);
  });

  it('leaves the code of an error and its place in the source', () => {
    const { log, lines } = recorder();
    log.error({ err: Object.assign(new Error('x'), { code: '23505' }) }, 'sweep_failed');
    expect(lines[0]).toMatchObject({ event: 'sweep_failed', code: '23505', level: 'error' });
    expect(lines[0]?.['at']).toEqual(
      expect.arrayContaining([expect.stringMatching(/^logger\.test\.ts:\d+$/)]),
    );
  });

  it('leaves the class of an error that has no code', () => {
    const { log, lines } = recorder();
    log.error({ err: new TypeError('x') }, 'sweep_failed');
    expect(lines[0]).toMatchObject({ code: 'TypeError' });
  });

  it('escapes control characters, so that one event stays one line', () => {
    const { log, raw } = recorder();
    log.info({ operation: 'a\nb', code: 'c\u0007' }, 'x');
    expect(raw.join('').split('\n')).toHaveLength(2);
  });
});
