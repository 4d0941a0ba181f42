import { z } from 'zod';

const shownInstant = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/)
  .meta({ examples: ['2026-12-24T09:00:00.000000Z'] });

const account = z
  .string()
  .regex(/^[A-Za-z0-9_.:-]{1,128}$/)
  .meta({ description: 'The account at the provider.', examples: ['default'] });

/** The `provider` of a path. A text of another form is answered like a provider that does not exist. */
export const ProviderParam = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,31}$/)
  .meta({ examples: ['stripe'] });

/** Why, in one line: it is shown to whoever finds the lane paused. */
const reason = z
  .string()
  .min(1)
  .max(140)
  // No control characters; as ranges, because few who read the document know classes of Unicode.
  .regex(/^[ -~\u00a0-\uffff]*$/)
  .meta({
    description: 'Why, for whoever finds the lane paused: one line, and nothing that is secret.',
    examples: ['provider asked us to stop until noon'],
  });

export const PauseLane = z
  .strictObject({ reason, account: account.optional() })
  .meta({ id: 'PauseLane', examples: [{ reason: 'provider asked us to stop until noon' }] });
export type PauseLaneCommand = z.infer<typeof PauseLane>;

export const ResumeLane = z
  .strictObject({ account: account.optional() })
  .meta({ id: 'ResumeLane', description: 'The body may also be left out.', examples: [{}] })
  .optional();
export type ResumeLaneCommand = z.infer<typeof ResumeLane>;

const Pause = z.strictObject({
  reason: z.string().nullable(),
  since: shownInstant.nullable(),
  by: z
    .string()
    .nullable()
    .meta({ description: 'The credential that asked, or the worker that found a reason.' }),
});

const Breaker = z.strictObject({
  state: z.enum(['closed', 'open', 'half_open']).meta({
    description: 'open: nothing is sent but single probes. half_open: a probe is under way.',
  }),
  enabled: z.boolean(),
  reason: z.enum(['failures_in_a_row', 'half_of_recent_calls']).nullable(),
  opened_at: shownInstant.nullable(),
  next_probe_at: shownInstant.nullable(),
  failures_in_a_row: z.int().min(0),
  recent_failures: z
    .int()
    .min(0)
    .meta({ description: 'Among the last 20 calls: without an answer that was understood, or not sent.' }),
});

/** One account at one provider: its budget, what keeps it back, and what waits for it. */
export const Lane = z
  .strictObject({
    provider: z.string(),
    account: z.string(),
    rate_per_second: z.number(),
    burst: z.number(),
    calls_in_flight: z.int().meta({ description: 'Most calls in flight of one worker.' }),
    tokens: z.number().meta({ description: 'Calls that may begin at once.' }),
    paused: Pause.nullable(),
    last_resumed: z
      .strictObject({ at: shownInstant, by: z.string() })
      .nullable()
      .meta({ description: 'Who ended the last pause.' }),
    breaker: Breaker,
    waiting_until: shownInstant.nullable().meta({
      description: 'The provider said that there are too many calls: nothing is sent before, then one probe.',
    }),
    is_probing: z.boolean().meta({ description: 'One call is under way; the others wait for its answer.' }),
    backlog: z.int().min(0).meta({ description: 'Due and not at the provider, counted up to 100000.' }),
    oldest_due_at: shownInstant.nullable(),
    backlog_ends_at: shownInstant
      .nullable()
      .meta({ description: 'Expected: backlog divided by rate. Null when nothing waits or it is paused.' }),
  })
  .meta({
    id: 'Lane',
    examples: [
      {
        provider: 'stripe',
        account: 'default',
        rate_per_second: 20,
        burst: 5,
        calls_in_flight: 200,
        tokens: 5,
        paused: null,
        last_resumed: null,
        breaker: {
          state: 'closed',
          enabled: true,
          reason: null,
          opened_at: null,
          next_probe_at: null,
          failures_in_a_row: 0,
          recent_failures: 0,
        },
        waiting_until: null,
        is_probing: false,
        backlog: 120,
        oldest_due_at: '2026-12-24T09:00:00.000000Z',
        backlog_ends_at: '2026-12-24T09:00:06.000000Z',
      },
    ],
  });
export type LaneView = z.infer<typeof Lane>;

export const LaneList = z.strictObject({ data: z.array(Lane) }).meta({ id: 'LaneList' });
export type LaneListView = z.infer<typeof LaneList>;
