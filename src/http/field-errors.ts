import type { z } from 'zod';
import { FIELD_CODES, type FieldCode, type FieldError } from '../domain/domain-error.js';

/** More faults than this in one answer help nobody and only make the answer large. */
const MAX_ERRORS = 20;
/** Members whose own members are named by the client: pointers stop here, so nothing is echoed. */
const OPAQUE_MEMBERS: ReadonlySet<PropertyKey> = new Set(['metadata']);

/**
 * Maps zod's issues to our closed list of codes. An unknown member is reported with the pointer of
 * the object that holds it, and a fault inside metadata with the pointer of `metadata`: the names
 * there come from the client, and answers do not echo what clients send.
 * @param value what was validated: tells a missing member from one of the wrong type.
 * @returns each pointer and code once, at most 20, in the order of the schema.
 */
export function fieldErrors(error: z.ZodError, value: unknown): readonly FieldError[] {
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const issue of error.issues) {
    const pointer = jsonPointer(issue.path);
    const code = fieldCode(issue, value);
    if (seen.has(`${code} ${pointer}`)) continue;
    seen.add(`${code} ${pointer}`);
    errors.push({ pointer, code });
    if (errors.length === MAX_ERRORS) break;
  }
  return errors;
}

function jsonPointer(path: readonly PropertyKey[]): string {
  const end = path.findIndex((part) => OPAQUE_MEMBERS.has(part));
  const shown = end === -1 ? path : path.slice(0, end + 1);
  return shown.map((part) => `/${String(part).replace(/~/g, '~0').replace(/\//g, '~1')}`).join('');
}

function fieldCode(issue: z.core.$ZodIssue, value: unknown): FieldCode {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'unknown_member';
    case 'invalid_type':
    case 'invalid_union':
      return valueAt(value, issue.path) === undefined ? 'required' : 'wrong_type';
    case 'too_big':
      return issue.origin === 'string' ? 'too_long' : 'out_of_range';
    case 'too_small':
      return issue.origin === 'string' ? 'too_short' : 'out_of_range';
    case 'invalid_value':
      return 'not_allowed_value';
    case 'custom':
      return namedCode(issue.message);
    case 'invalid_format':
    case 'invalid_element':
    case 'invalid_key':
    case 'not_multiple_of':
      return 'malformed';
  }
}

/** Our own checks name their code as the issue's message; anything else is only malformed. */
function namedCode(message: string): FieldCode {
  return (FIELD_CODES as readonly string[]).includes(message) ? (message as FieldCode) : 'malformed';
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at: unknown = value;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[part];
  }
  return at;
}
