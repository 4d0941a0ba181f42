import type { LoggerService } from '@nestjs/common';
import type { Log } from './logger.js';

type Line = Readonly<Record<string, unknown>>;

/** The framework's own sentences, which may quote anything, become this event without text. */
const FRAMEWORK_EVENT = 'framework_message';

/**
 * Lets Nest log through the logger of the process. Our own code hands over
 * `{ event, …fields }`; of the framework's free text only an event of its level remains, and its
 * start-up chatter only at level debug.
 */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Log) {}

  log(message: unknown): void {
    this.write('debug', message);
  }

  warn(message: unknown): void {
    this.write('warn', message);
  }

  error(message: unknown, ...details: unknown[]): void {
    this.write('error', message, details[0]);
  }

  fatal(message: unknown, ...details: unknown[]): void {
    this.write('fatal', message, details[0]);
  }

  private write(level: 'debug' | 'warn' | 'error' | 'fatal', message: unknown, stack?: unknown): void {
    if (message instanceof Error) return this.logger[level]({ err: message }, FRAMEWORK_EVENT);
    if (typeof message === 'object' && message !== null) {
      const { event, ...fields } = message as Line;
      return this.logger[level](fields, typeof event === 'string' ? event : FRAMEWORK_EVENT);
    }
    this.logger[level](typeof stack === 'string' ? { err: { stack } } : {}, FRAMEWORK_EVENT);
  }
}
