const TIME =
  /^((?:19[7-9]|2[0-9]{2})[0-9]-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)(Z|[+-][0-9]{2}:[0-9]{2})?)?$/;

/**
 * Reads the time of a settlement row: RFC 3339, a date alone (its midnight), or a time without an
 * offset, which providers mean as UTC.
 * @returns RFC 3339 text that Postgres reads, or null for a time that does not exist or another form.
 */
export function parseSettlementTime(text: string): string | null {
  const found = TIME.exec(text);
  if (!found) return null;
  const [, date = '', time = '00:00:00', offset = 'Z'] = found;
  const instant = `${date}T${time}${offset}`;
  const ms = Date.parse(instant);
  if (Number.isNaN(ms)) return null;
  // JavaScript reads 31 February as 3 March; Postgres would refuse the whole batch.
  const dayMs = Date.parse(`${date}T00:00:00Z`);
  return new Date(dayMs).toISOString().slice(0, 10) === date ? instant : null;
}
