/** What an array literal may hold without quotes, whatever its type. */
const PLAIN = /^[A-Za-z0-9_.:/+-]+$/;

/**
 * Values as one array literal of Postgres, for statements that take thousands of rows as arrays: the
 * driver's own conversion looks at each value's type and escapes each twice.
 * @param values texts, integers or nulls; null is NULL, and the text "NULL" stays a text.
 */
export function arrayLiteral(values: readonly (string | bigint | number | null)[]): string {
  return `{${values.map(element).join(',')}}`;
}

function element(value: string | bigint | number | null): string {
  if (value === null) return 'NULL';
  if (typeof value !== 'string') return String(value);
  if (PLAIN.test(value) && !(value.length === 4 && value.toUpperCase() === 'NULL')) return value;
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}
