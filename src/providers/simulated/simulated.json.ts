/**
 * Parses JSON with every member `amount` read from its own digits: a bigint when it is written as a
 * plain whole number of at most 15 digits, null when it is any other number (`1e3`, `1.0`, `-1`).
 * No amount passes through a float.
 * @returns undefined when the text is not JSON.
 */
export function parseWithExactAmount(text: string): unknown {
  try {
    return JSON.parse(text, exactAmount) as unknown;
  } catch {
    return undefined;
  }
}

/** The third argument holds the literal as it was written (JSON.parse source text access). */
function exactAmount(name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (name !== 'amount' || typeof value !== 'number') return value;
  return /^(0|[1-9]\d{0,14})$/.test(context?.source ?? '') ? BigInt(context?.source ?? '') : null;
}
