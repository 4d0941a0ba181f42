import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/domain/domain-error.js';
import { JsonNumber, parseStrictJson } from '../../../src/http/strict-json.js';

const parse = (text: string | Buffer, maxDepth?: number): unknown =>
  parseStrictJson(Buffer.from(text as string), maxDepth);
const refusal = (text: string | Buffer, maxDepth?: number): string => {
  try {
    parse(text, maxDepth);
    return 'read';
  } catch (error) {
    // Anything but a refusal with a code would be a 500.
    if (!(error instanceof DomainError)) throw error;
    return error.code;
  }
};

describe('numbers', () => {
  it.each(['0', '1', '-1', '1999', '999999999999', '9007199254740991', '1.5', '-0.25'])(
    '%s is a number: it is written as its value is',
    (literal) => {
      expect(parse(`{"a":${literal}}`)).toEqual({ a: Number(literal) });
    },
  );

  it.each([
    '1e3',
    '1E3',
    '10.0',
    '-0',
    '1.50',
    '1e400',
    '9007199254740993',
    '0.1e1',
    '0.30000000000000004000',
    '123456789012345678901234567890',
  ])('AM-03: %s keeps its literal and is no number', (literal) => {
    const { a } = parse(`{"a":${literal}}`) as { a: unknown };
    expect(a).toBeInstanceOf(JsonNumber);
    expect(String(a)).toBe(literal);
  });

  it.each(['01', '+1', '.5', '5.', '0x10', '1n', 'NaN', 'Infinity', '1_000', '１', '--1', '1e'])(
    'AM-03: %s is no JSON',
    (literal) => {
      expect(refusal(`{"a":${literal}}`)).toBe('body_syntax');
    },
  );

  it('every double survives, or keeps its literal', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const literal = JSON.stringify(value);
        const read = parse(literal);
        expect(read instanceof JsonNumber ? read.literal : JSON.stringify(read)).toBe(literal);
      }),
    );
  });
});

describe('what is refused', () => {
  it.each([
    [
      'bytes that are no UTF-8',
      Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
      'body_not_utf8',
    ],
    ['an overlong sequence', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'body_not_utf8'],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'body_not_utf8'],
    ['UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le'), 'body_not_utf8'],
    ['UTF-16 without a mark', Buffer.from('{"a":1}', 'utf16le'), 'body_syntax'],
    ['a byte order mark', '\ufeff{"a":1}', 'body_byte_order_mark'],
    ['nothing', '', 'body_syntax'],
    ['only white space', ' \n', 'body_syntax'],
    ['a trailing comma', '{"a":1,}', 'body_syntax'],
    ['a comment', '{"a":1/**/}', 'body_syntax'],
    ['two texts', '{}{}', 'body_syntax'],
    ['a non-breaking space', '\u00a0{"a":1}', 'body_syntax'],
    ['a tab in a string', '{"a":"\t"}', 'body_syntax'],
    ['an unclosed string', '{"a":"x', 'body_syntax'],
    ['a backslash at the end', '{"a":"\\', 'body_syntax'],
    ['an unknown escape', '{"a":"\\x"}', 'body_syntax'],
    ['an unknown escape in a name', '{"\\x":1}', 'body_syntax'],
    ['a raw NUL', '{"a":"\0"}', 'body_syntax'],
    ['an escaped NUL', '{"a":"\\u0000"}', 'body_forbidden_text'],
    ['an escaped NUL in a name', '{"\\u0000":1}', 'body_forbidden_text'],
    ['a lone high surrogate', '{"a":"\\ud800"}', 'body_forbidden_text'],
    ['a lone low surrogate in a name', '{"\\udc00":1}', 'body_forbidden_text'],
    ['a lone surrogate in an array', '["\\udfff"]', 'body_forbidden_text'],
    ['a member twice', '{"a":1,"a":2}', 'body_duplicate_member'],
    ['a member twice with one value', '{"a":1,"a":1}', 'body_duplicate_member'],
    ['a member twice, once escaped', '{"a":1,"\\u0061":1}', 'body_duplicate_member'],
    ['a member twice, deep inside', '{"x":[{"b":{"c":1,"c":1}}]}', 'body_duplicate_member'],
    ['a member twice around an object', '{"a":{"a":1},"b":1,"a":2}', 'body_duplicate_member'],
    ['the empty name twice', '{"":1,"":2}', 'body_duplicate_member'],
    ['__proto__', '{"__proto__":{"x":1}}', 'body_forbidden_member'],
    ['__proto__, escaped', '{"\\u005f_proto__":{"x":1}}', 'body_forbidden_member'],
    ['__proto__, nested', '{"a":[{"__proto__":1}]}', 'body_forbidden_member'],
  ])('SE-02: %s', (_what, text, code) => {
    expect(refusal(text)).toBe(code);
  });

  it('nesting of 9 objects or arrays, while 8 are read', () => {
    expect(refusal('['.repeat(8) + ']'.repeat(8))).toBe('read');
    expect(refusal('['.repeat(9) + ']'.repeat(9))).toBe('body_too_deep');
    expect(refusal('{"a":'.repeat(8) + '1' + '}'.repeat(8))).toBe('read');
    expect(refusal('{"a":'.repeat(9) + '1' + '}'.repeat(9))).toBe('body_too_deep');
    expect(refusal('[{"a":[{}]}]')).toBe('read');
  });

  it('a million open brackets, without recursion', () => {
    expect(refusal('['.repeat(1_000_000))).toBe('body_too_deep');
  });
});

describe('what is read', () => {
  it.each([
    ['the same name in siblings', '{"x":{"a":1},"y":{"a":1},"z":["a","a",":"]}'],
    ['names that look like numbers', '{"1":1,"0":2}'],
    ['constructor as a name', '{"constructor":{"prototype":{"x":1}}}'],
    ['a pair of surrogates', '{"a":"\\ud83d\\ude00"}'],
    ['structure inside strings', '{"a":"{\\"a\\":1,\\"a\\":2}[[[[[[[[[[","b":"__proto__"}'],
    ['line separators', '{"a":"\u2028\u2029"}'],
    ['a bare number', '5'],
    ['null', 'null'],
    ['white space anywhere', ' {\t"a" :\r\n1 , "b":[ ] } '],
  ])('%s', (_what, text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it('leaves every prototype alone', () => {
    parse('{"constructor":{"prototype":{"polluted":1}}}');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

/** Says by recursive descent over a valid text whether some object names a member twice. */
function namesAMemberTwice(text: string): boolean {
  let at = 0;
  let twice = false;
  const space = (): void => {
    while (/\s/.test(text[at] ?? '')) at++;
  };
  const string = (): string => {
    const from = at++;
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    at++;
    return JSON.parse(text.slice(from, at)) as string;
  };
  const items = (close: string, item: () => void): void => {
    at++;
    for (space(); text[at] !== close; space()) {
      item();
      space();
      if (text[at] === ',') at++;
    }
    at++;
  };
  const value = (): void => {
    space();
    if (text[at] === '"') string();
    else if (text[at] === '[') items(']', value);
    else if (text[at] === '{') {
      const names = new Set<string>();
      items('}', () => {
        const name = string();
        if (names.has(name)) twice = true;
        names.add(name);
        space();
        at++;
        value();
      });
    } else while (at < text.length && !/[,\]}\s]/.test(text[at] ?? '')) at++;
  };
  value();
  return twice;
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

describe('against JSON.parse', () => {
  it('reads the same value from every text that holds nothing forbidden', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6, stringUnit: 'binary' }), (text) => {
        const code = refusal(text, 50);
        if (code === 'read') {
          const literals = (_name: string, value: unknown): unknown =>
            value instanceof JsonNumber ? Number(value.literal) : value;
          expect(JSON.parse(JSON.stringify(parse(text, 50), literals))).toEqual(JSON.parse(text));
        } else {
          expect(['body_forbidden_text', 'body_forbidden_member']).toContain(code);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it('accepts a row of tokens exactly when JSON.parse does and no member comes twice', () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'a',
      '"a"',
      '"b"',
      '1',
      '-',
      ' ',
      'true',
      '"\\u0061"',
    );
    fc.assert(
      fc.property(fc.array(token, { minLength: 1, maxLength: 14 }), (tokens) => {
        const text = tokens.join('');
        const code = refusal(text, 50);
        if (isJson(text)) expect(code).toBe(namesAMemberTwice(text) ? 'body_duplicate_member' : 'read');
        else expect(code).not.toBe('read');
      }),
      { numRuns: 20_000 },
    );
  });

  it('finds every duplicate in nested objects, and only those', () => {
    const { text: object } = fc.letrec<{ value: string; text: string; list: string }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom('1', '"a"', '":"', '"{"', '"\\\\"', '"\\""'),
        tie('text'),
        tie('list'),
      ),
      text: fc
        .array(fc.tuple(fc.constantFrom('"a"', '"b"', '"\\u0061"', '"c:"', '"}"'), tie('value')), {
          maxLength: 3,
        })
        .map((pairs) => `{${pairs.map(([name, value]) => `${name} : ${value}`).join(',')}}`),
      list: fc.array(tie('value'), { maxLength: 3 }).map((values) => `[${values.join(' ,')}]`),
    }));
    let found = 0;
    fc.assert(
      fc.property(object, (text) => {
        const twice = namesAMemberTwice(text);
        if (twice) found++;
        expect(refusal(text, 500)).toBe(twice ? 'body_duplicate_member' : 'read');
      }),
      { numRuns: 3_000 },
    );
    expect(found).toBeGreaterThan(0);
  });

  it('refuses every body of random bytes that JSON.parse does not read', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const body = Buffer.from(bytes);
        const isValid = Buffer.from(body.toString('utf8')).equals(body) && isJson(body.toString('utf8'));
        if (!isValid) expect(refusal(body)).not.toBe('read');
      }),
      { numRuns: 3_000 },
    );
  });
});
