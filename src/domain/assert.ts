/** For the default branch of an exhaustive switch: the compiler proves it is never reached. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value ${String(value)}`);
}

/**
 * Fails loudly on a broken assumption of our own code. Never for input: input is refused.
 * @throws Error with the given message.
 */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
