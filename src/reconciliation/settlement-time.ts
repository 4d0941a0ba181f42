const TIME =
  /^((?:19[7-9]|2[0-9]{2})[0-9]-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)(Z|[+-][0-9]{2}:[0-9]{2})?)?$/;

/**
 * Reads the time of a settlement row: RFC 3339, a date alone (its midnight), or a time without an
 * offset, which providers mean as UTC.
 * @returns RFC 3339 text that Postgres reads, or null for a time that does not exist or another form.
 */
export function parseSettlementTime(text: string): string | null {
  if (text !== last.text) last = { text, instant: parse(text) };
  return last.instant;
}

/** Rows beside each other often have one time, and each its booking and its availability. */
let last: { readonly text: string; readonly instant: string | null } = { text: '', instant: null };

function parse(text: string): string | null {
  const found = TIME.exec(text);
  if (!found) return null;
  const [, date = '', time = '00:00:00', offset = 'Z'] = found;
  const instant = `${date}T${time}${offset}`;
  if (Number.isNaN(Date.parse(instant))) return null;
  // JavaScript reads 31 February as 3 March; Postgres would refuse the whole batch.
  return Number(date.slice(8, 10)) <= daysOf(Number(date.slice(0, 4)), Number(date.slice(5, 7)))
    ? instant
    : null;
}

/** @param month 1 to 12. Day 0 of the next month is the last of this one. */
const daysOf = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate();
