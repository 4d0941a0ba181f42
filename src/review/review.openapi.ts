import { applyDecorators } from '@nestjs/common';
import { ApiAcceptedResponse, ApiHeader, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Operation } from '../http/documented.js';
import { Payment } from '../payments/schemas/payment.schema.js';
import { Resolution, ReviewDetail, ReviewList } from './schemas/review.schema.js';

/** How the routes of reviews are described in the OpenAPI document, one decorator per operation. */

const ifMatch = (required: boolean) =>
  ApiHeader({
    name: 'If-Match',
    required,
    description: 'The entity tag of the payment that you have seen; another version is refused with 412.',
    schema: { type: 'string', pattern: '^"v[1-9][0-9]{0,9}"$' },
  });
const theReview = (description: string) => ApiOkResponse({ description, standardSchema: ReviewDetail });

export const Controller = (): ClassDecorator => ApiTags('reviews') as ClassDecorator;

export const List = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'List open reviews',
      description: `Payments that people have to look into, oldest first: outcomes that nobody knows, and news
that contradicts a final state. Follow next_cursor until it is null.`,
      readsBody: false,
      refusals: ['validation_failed'],
    }),
    ApiOkResponse({ description: 'One page.', standardSchema: ReviewList }),
  ) as MethodDecorator;

export const Read = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Read the review of a payment',
      description: `The open case of the payment, else its newest one, with the newest 500 rows of evidence and
every proposal, oldest first.`,
      readsBody: false,
      refusals: ['not_found'],
    }),
    theReview('The review.'),
  ) as MethodDecorator;

export const Own = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Take a review',
      description: 'The caller becomes its owner, whoever was before. It decides nothing.',
      readsBody: true,
      refusals: ['not_found', 'not_applicable', 'outcome_unknown'],
    }),
    theReview('Taken.'),
  ) as MethodDecorator;

export const Close = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Close the review of a final payment',
      description: `For contradictions that were looked into: nothing about the payment changes. The review of a
payment in needs_review ends with its resolution, and this is 409.`,
      readsBody: true,
      refusals: ['body_missing', 'not_found', 'not_applicable', 'outcome_unknown'],
    }),
    theReview('Closed.'),
  ) as MethodDecorator;

export const Propose = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Propose how a review ends',
      description: `Only in needs_review, by a person, for the version that the person has seen. Nothing moves
until another person approves within 24 hours. The proposal is void when the payment moves, when
something new becomes known, when another proposal takes its place, or when its proposer's access is
taken away. A repeat answers the same proposal. 422 \`resolution_not_allowed\` names in \`reason\` what the outcome lacks.`,
      readsBody: true,
      refusals: [
        'body_missing',
        'not_found',
        'if_match_invalid',
        'if_match_required',
        'payment_final',
        'not_applicable',
        'version_mismatch',
        'resolution_not_allowed',
        'provider_unknown',
        'outcome_unknown',
      ],
    }),
    ifMatch(true),
    ApiAcceptedResponse({
      description: 'Proposed: it waits for a second person.',
      standardSchema: Resolution,
    }),
  ) as MethodDecorator;

export const Approve = (): MethodDecorator =>
  applyDecorators(
    Operation({
      summary: 'Approve a proposal',
      description: `By another person than the one who proposed, whatever the credential, who logged in with a
second factor. The payment moves in the same step. A repeat by the same person is 200.`,
      readsBody: true,
      refusals: [
        'not_found',
        'if_match_invalid',
        'second_person_required',
        'second_factor_required',
        'payment_final',
        'not_applicable',
        'proposal_void',
        'version_mismatch',
        'resolution_not_allowed',
        'provider_unknown',
        'outcome_unknown',
      ],
    }),
    ifMatch(false),
    ApiOkResponse({
      description: 'Approved: the payment as it is now.',
      standardSchema: Payment,
      headers: { ETag: { description: 'The version of the payment.', schema: { type: 'string' } } },
    }),
  ) as MethodDecorator;
