import { assert } from './assert.js';

declare const instantBrand: unique symbol;

/**
 * A moment as whole microseconds since 1970-01-01T00:00:00Z, without leap seconds, between the
 * years 0001 and 9999 in UTC. A bigint, so that nothing rounds: Postgres keeps microseconds too,
 * while the language's own dates cut them to milliseconds and read 30 February as 2 March.
 */
export type Instant = bigint & { readonly [instantBrand]: true };

export const MICROS_PER_MILLISECOND = 1_000n;
export const MICROS_PER_SECOND = 1_000_000n;
export const MICROS_PER_DAY = 86_400_000_000n;

const SECONDS_PER_DAY = 86_400;
const DAYS_PER_ERA = 146_097;
/** Days from 0000-03-01 to 1970-01-01 in the proleptic Gregorian calendar. */
const DAYS_TO_EPOCH = 719_468;
/** 0001-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z. */
const EARLIEST = -62_135_596_800_000_000n;
const LATEST = 253_402_300_799_999_999n;

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|([+-])(\d\d):(\d\d))$/;
const POSTGRES = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:\+00(?::00)?|Z)$/;

/**
 * The one parser of times that come from outside: RFC 3339 with seconds and an offset, `T` and
 * `Z` in upper case, up to 6 fraction digits, nothing before or after.
 * @returns null for everything else: an impossible day, 24:00, :60, a missing offset, an offset
 * beyond ±23:59, more than 6 digits, or a moment outside the years 0001 to 9999 once in UTC.
 * A past moment is an instant: whether it is allowed is asked of the database's clock.
 */
export function parseInstant(text: string): Instant | null {
  const m = RFC_3339.exec(text);
  if (!m) return null;
  const seconds = utcSeconds(m);
  if (seconds === null) return null;
  const offsetHours = Number(m[9] ?? 0);
  const offsetMinutes = Number(m[10] ?? 0);
  if (offsetHours > 23 || offsetMinutes > 59) return null;
  const offset = (offsetHours * 60 + offsetMinutes) * 60 * (m[8] === '-' ? -1 : 1);
  return inRange(BigInt(seconds - offset) * MICROS_PER_SECOND + fractionMicros(m[7]));
}

/** Shown to clients: UTC, always 6 fraction digits, `2026-12-24T09:00:00.000000Z`. */
export function formatInstant(at: Instant): string {
  return `${formatDay(at)}T${formatTime(at)}Z`;
}

/** A `timestamptz` parameter for Postgres, exact to the microsecond in any session time zone. */
export function instantToPostgres(at: Instant): string {
  return `${formatDay(at)} ${formatTime(at)}+00`;
}

/**
 * Reads the text that Postgres prints for a `timestamptz` in a session whose time zone is UTC,
 * `2026-12-24 09:00:00.123456+00`, or the same moment in the form of `formatInstant`.
 * @throws Error for any other text (another zone, `infinity`, a year outside 0001 to 9999): the
 * column or the session is not what our code assumes.
 */
export function instantFromPostgres(text: string): Instant {
  const m = POSTGRES.exec(text);
  const seconds = m && utcSeconds(m);
  const at =
    m && seconds !== null ? inRange(BigInt(seconds) * MICROS_PER_SECOND + fractionMicros(m[7])) : null;
  assert(at !== null, 'Postgres answered a time that is not a timestamptz in UTC');
  return at;
}

/**
 * @param micros whole microseconds since the epoch.
 * @throws Error outside the years 0001 to 9999: a bug in the caller.
 */
export function instantFromMicros(micros: bigint): Instant {
  const at = inRange(micros);
  assert(at !== null, 'an instant lies between the years 0001 and 9999');
  return at;
}

/**
 * The instant that lies `micros` microseconds later (earlier when negative).
 * @throws Error when it leaves the years 0001 to 9999.
 */
export function shiftInstant(at: Instant, micros: bigint): Instant {
  return instantFromMicros(at + micros);
}

function inRange(micros: bigint): Instant | null {
  return micros >= EARLIEST && micros <= LATEST ? (micros as Instant) : null;
}

/** Seconds since the epoch of the matched date and time, read as UTC; null when there is no such one. */
function utcSeconds(m: RegExpExecArray): number | null {
  const [year, month, day] = [Number(m[1]), Number(m[2]), Number(m[3])];
  const [hour, minute, second] = [Number(m[4]), Number(m[5]), Number(m[6])];
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59) return null;
  return daysSinceEpoch(year, month, day) * SECONDS_PER_DAY + (hour * 60 + minute) * 60 + second;
}

function fractionMicros(digits: string | undefined): bigint {
  return digits === undefined ? 0n : BigInt(digits.padEnd(6, '0'));
}

function daysInMonth(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
}

/**
 * Days of the proleptic Gregorian calendar, with years that begin in March so that the leap day
 * is the last one (Howard Hinnant, "chrono-compatible low-level date algorithms").
 */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * DAYS_PER_ERA + dayOfEra - DAYS_TO_EPOCH;
}

/** The inverse of `daysSinceEpoch`, as `YYYY-MM-DD`. */
function formatDay(at: Instant): string {
  const days = Number((at - mod(at, MICROS_PER_DAY)) / MICROS_PER_DAY) + DAYS_TO_EPOCH;
  const era = Math.floor(days / DAYS_PER_ERA);
  const dayOfEra = days - era * DAYS_PER_ERA;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${digits(year, 4)}-${digits(month, 2)}-${digits(day, 2)}`;
}

function formatTime(at: Instant): string {
  const micros = mod(at, MICROS_PER_DAY);
  const seconds = Number(micros / MICROS_PER_SECOND);
  const fraction = Number(micros % MICROS_PER_SECOND);
  const hour = Math.floor(seconds / 3600);
  const minute = Math.floor(seconds / 60) % 60;
  return `${digits(hour, 2)}:${digits(minute, 2)}:${digits(seconds % 60, 2)}.${digits(fraction, 6)}`;
}

/** Never negative, unlike `%`: times before 1970 count forward within their day too. */
function mod(value: bigint, by: bigint): bigint {
  return ((value % by) + by) % by;
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0');
}
