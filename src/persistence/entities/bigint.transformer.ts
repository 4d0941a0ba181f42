import type { ValueTransformer } from 'typeorm';

/** bigint columns arrive as text: to BigInt and back, never through a float. Null stays null. */
export const bigintTransformer: ValueTransformer = {
  from: (stored: string | null) => (stored === null ? null : BigInt(stored)),
  to: (value: bigint | null | undefined) => (typeof value === 'bigint' ? value.toString() : value),
};
