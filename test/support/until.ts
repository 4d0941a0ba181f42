/** Generous: it only ends a test that would fail anyway. */
const LIMIT_MS = 30_000;
const POLL_MS = 10;

/**
 * Reads again and again until the value is as it should be, and returns it.
 * @throws Error with the last value when it never was.
 */
export async function until<T>(
  what: string,
  read: () => T | Promise<T>,
  fulfilled: (value: T) => boolean,
  limitMs = LIMIT_MS,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await read();
    if (fulfilled(value)) return value;
    if (performance.now() > deadline) throw new Error(`${what} did not come: ${JSON.stringify(value)}`);
    await new Promise((next) => setTimeout(next, POLL_MS));
  }
}
