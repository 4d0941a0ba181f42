/**
 * Something the person at the terminal can act on: the message is one sentence or two, says what is
 * wrong and what to do, and is printed without a stack.
 */
export class StackError extends Error {
  override readonly name = 'StackError';
}

/** What to print for any failure: a `StackError`'s sentence, else the stack, which is a bug report. */
export function explain(error: unknown): string {
  if (error instanceof StackError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The `code` of a Node system error ('ENOENT', 'EADDRINUSE', …), or null. */
export function systemCode(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
}
