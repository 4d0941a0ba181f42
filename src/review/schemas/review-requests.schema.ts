import { z } from 'zod';

export const DEFAULT_PAGE = 25;

export interface ListReviewsQuery {
  readonly limit: number;
  readonly after: string | null;
}

/** The query of GET /v1/reviews. */
export const ListReviews = z
  .strictObject({
    limit: z
      .string()
      .regex(/^(?:[1-9][0-9]?|100)$/)
      .optional()
      .meta({ description: `Cases per page, 1 to 100; ${DEFAULT_PAGE} when left out.`, examples: ['25'] }),
    cursor: z
      .string()
      .regex(/^[1-9][0-9]{0,17}$/)
      .optional()
      .meta({ description: 'next_cursor of the page before.' }),
  })
  .transform((query): ListReviewsQuery => ({
    limit: query.limit === undefined ? DEFAULT_PAGE : Number(query.limit),
    after: query.cursor ?? null,
  }));

export interface CloseReviewCommand {
  readonly reason: string;
}

/** The body of POST /v1/reviews/{payment_id}/close. */
export const CloseReview = z
  .strictObject({
    reason_code: z
      .enum(['news_was_wrong', 'settled_with_provider', 'settled_with_client', 'duplicate_news'])
      .meta({ description: 'What came of it, as one word.' }),
  })
  .transform((body): CloseReviewCommand => ({ reason: body.reason_code }))
  .meta({ id: 'CloseReview', examples: [{ reason_code: 'settled_with_provider' }] });

/** The `rid` of a path; a text of another form is answered like an id that does not exist. */
export const ResolutionIdParam = z
  .string()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  .meta({ examples: ['019b1f0a-0000-7000-8000-000000000000'] });
