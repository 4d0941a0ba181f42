import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common';
import type { z } from 'zod';
import { DomainError } from '../domain/domain-error.js';
import { fieldErrors } from './field-errors.js';

/**
 * Validates a handler's argument against the zod schema of its decorator
 * (`@Body({ schema })`, `@Query({ schema })`, `@Param({ schema })`) and hands on the schema's
 * output.
 * @throws DomainError `body_missing` when a body was needed and none came; `not_found` for a path
 * parameter of the wrong form, as for an id that does not exist; else `validation_failed` with one
 * entry of `errors` per fault.
 */
@Injectable()
export class SchemaPipe implements PipeTransform {
  transform(value: unknown, metadata: ArgumentMetadata): unknown {
    const schema = (metadata as { schema?: z.ZodType }).schema;
    if (schema === undefined) return value;
    if (metadata.type === 'body' && value === undefined && !schema.safeParse(undefined).success) {
      throw new DomainError('body_missing');
    }
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    if (metadata.type === 'param') throw new DomainError('not_found');
    throw new DomainError('validation_failed', { errors: fieldErrors(parsed.error, value) });
  }
}
