import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Operation } from '../http/documented.js';
import { LaneList } from './schemas/lane.schema.js';

/** How the routes of lanes are described in the OpenAPI document. */

export const Controller = (): ClassDecorator => ApiTags('lanes') as ClassDecorator;

const theLanes = (description: string) => ApiOkResponse({ description, standardSchema: LaneList });

export const List = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Read the lanes',
      description: `One per provider and account: its budget, what keeps it back (a pause, the provider's word,
the breaker), what is due and waits for it, and when that is expected to end. Lanes serve every tenant.`,
      readsBody: false,
      refusals: [],
    }),
    theLanes('Every lane, by provider and account.'),
  ) as MethodDecorator;

export const Pause = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Pause the lanes of a provider',
      description: `Nothing is started, tried again or sent again until they are resumed, also when every process
restarts. Lookups and events go on. Calls that are under way end as they will. Scheduled payments stay
scheduled and can be cancelled. Without \`account\` every lane of the provider is paused. A repeat
changes nothing: the first reason, time and author stay.`,
      readsBody: true,
      refusals: ['body_missing', 'not_found', 'outcome_unknown'],
    }),
    theLanes('The lanes as they are now.'),
  ) as MethodDecorator;

export const Resume = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Resume the lanes of a provider',
      description: `Ends their pause, whoever made it. A wait that the provider asked for and an open breaker
stay and end by themselves. A repeat is 200 and changes nothing.`,
      readsBody: true,
      refusals: ['not_found', 'outcome_unknown'],
    }),
    theLanes('The lanes as they are now.'),
  ) as MethodDecorator;
