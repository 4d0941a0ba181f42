/** Where a command reads its surroundings and writes its answer; tests give their own. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  /** The folder that relative paths start from. */
  readonly folder: string;
  /** True when a person watches: progress may be drawn. */
  readonly isInteractive: boolean;
  /** The answer. One text per call; a line feed is added. */
  out(text: string): void;
  /** What went wrong and hints, apart from the answer. */
  err(text: string): void;
}

/** 0: done. 1: refused or failed. 2: wrong usage, or it could not be asked. */
export type ExitCode = 0 | 1 | 2;

/** Ends a command with a sentence. With `--json` the body, or the sentence as an object, is printed. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  constructor(
    readonly exitCode: 1 | 2,
    /** One or more sentences for a person; holds no secret. */
    message: string,
    /** What machines read. */
    readonly body: object = { error: { message } },
  ) {
    super(message);
  }
}
