import type { Log } from './logger.js';

/** What of the process this needs; tests give their own. */
export interface EndingProcess {
  on(event: 'uncaughtException', told: (error: unknown) => void): unknown;
  exit(code: number): void;
}

/**
 * An error that nobody caught ends the process, as it does without this; but it goes through the log's
 * allow-list. Node would print its message, its cause and its members, and with an error of the database
 * the row that it was about. Also promises that were rejected and left alone end here.
 */
export function logLastWords(log: Log, ending: EndingProcess = process): void {
  ending.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'uncaught_exception');
    ending.exit(1);
  });
}
