import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DomainError } from '../domain/domain-error.js';
import type { AllowedMethods } from './allowed-methods.js';
import { problemAnswer } from './problem.js';
import { headersOfEveryAnswer } from './request-id.js';
import { translateError } from './translate-error.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set just before the handler is entered. */
    hasBegun: boolean;
  }
}

/**
 * Answers everything that was thrown, by handlers, guards, pipes and Fastify itself, as one
 * problem (RFC 9457). What is not understood is 500 without detail, and logged.
 */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  constructor(
    private readonly allowedMethods: AllowedMethods,
    private readonly random: () => number = Math.random,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(thrown, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  /** For Fastify's `frameworkErrors` too: errors of the router, before any hook ran. */
  answer(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const { method = '', url = '', complete: isComplete } = request.raw;
    const { hasBegun, is404: isUnrouted } = request;
    const allowedMethods = isUnrouted ? this.allowedMethods.of(url) : [];
    const error = translateError(thrown, { method, hasBegun, isComplete, isUnrouted, allowedMethods });
    this.log(error, request.id);
    // Too late to say anything; Fastify has already ended or is ending the answer.
    if (reply.sent) return;
    const answer = problemAnswer(error, request.id, this.random);
    // The rest of the request may still come: it must not be taken for the next one.
    if (error.code === 'request_timeout') reply.header('Connection', 'close');
    if (error.code === 'method_not_allowed') reply.header('Allow', allowedMethods.join(', '));
    // As bytes: to a text Fastify would add a charset, which this media type does not have.
    void reply
      .code(answer.status)
      .headers({ ...headersOfEveryAnswer(request.id), ...answer.headers })
      .send(Buffer.from(answer.body));
  }

  /** The logger drops what is on no list: of the fault, its class, code and places remain. */
  private log(error: DomainError, requestId: string): void {
    if (error.status < 500) return;
    const line = { event: error.code, request_id: requestId, err: error.cause };
    if (error.status === 500) this.logger.error(line);
    else this.logger.warn(line);
  }
}
