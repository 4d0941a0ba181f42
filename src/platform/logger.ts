import pino from 'pino';
import { keepAllowed } from './log-fields.js';

/**
 * One line of JSON per event, from an allow-list: `log.info({ payment_id }, 'payment_cancelled')`.
 * The second argument is an event code in snake_case; free text does not pass.
 */
export type Log = pino.Logger;

export interface LoggerOptions {
  readonly level: 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug';
  /** The process, such as `api` or `worker`. */
  readonly name: string;
  /** Where the lines go; standard output when absent. */
  readonly destination?: pino.DestinationStream;
}

/**
 * Makes the logger of a process. Time is this machine's clock in UTC with milliseconds. Whatever
 * is logged, only the fields of `log-fields.ts` leave: an error leaves its code and its place in
 * the source, never its message.
 */
export function createLogger(options: LoggerOptions): Log {
  return pino(
    {
      level: options.level,
      base: { name: options.name },
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        // Without an event of its own a line would take the message of its error.
        logMethod(args, method) {
          const [first, event] = args as unknown as [unknown, unknown];
          if (typeof first === 'string' || typeof event === 'string') method.apply(this, args);
          else
            method.apply(this, [first instanceof Error ? { err: first } : first, 'unnamed_event'] as never);
        },
        // The last step before the stream: bindings of children and serializers have been applied.
        streamWrite: keepAllowed,
      },
    },
    options.destination ?? pino.destination(1),
  );
}
