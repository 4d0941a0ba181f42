import { z } from 'zod';

/** The body of a command that needs none: nothing at all, or an object without members. */
export const NoMembers = z
  .strictObject({})
  .meta({ id: 'NoMembers', description: 'An object without members; the body may also be left out.' })
  .optional();
