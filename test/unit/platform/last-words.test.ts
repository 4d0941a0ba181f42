import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { logLastWords } from '../../../src/platform/last-words.js';
import { createLogger } from '../../../src/platform/logger.js';

it('an error that nobody caught ends the process and leaves its place, not its words', () => {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    name: 'test',
    destination: { write: (line) => void lines.push(line) },
  });
  const exits: number[] = [];
  const ending = Object.assign(new EventEmitter(), { exit: (code: number) => void exits.push(code) });
  logLastWords(log, ending);
  const detail = 'Failing row contains (acct_secret)';
  const cause = new Error('invalid input syntax: "acct_secret"');
  ending.emit(
    'uncaughtException',
    Object.assign(new Error('acct_secret', { cause }), { code: '23514', detail }),
  );
  expect(exits).toEqual([1]);
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toContain('acct_secret');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'fatal',
    event: 'uncaught_exception',
    code: '23514',
    at: [
      expect.stringMatching(/^last-words\.test\.ts:\d+$/),
      expect.anything(),
      expect.anything(),
      expect.anything(),
      expect.anything(),
    ],
  });
});
