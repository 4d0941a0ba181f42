/** One thing that doctor looks at. */
export interface Check {
  readonly name: string;
  readonly result: 'ok' | 'warning' | 'failed' | 'skipped';
  /** What was found, and for everything but ok what to do. Holds no secret. */
  readonly detail: string;
}

export const ok = (name: string, detail: string): Check => ({ name, result: 'ok', detail });
export const warning = (name: string, detail: string): Check => ({ name, result: 'warning', detail });
export const failed = (name: string, detail: string): Check => ({ name, result: 'failed', detail });
export const skipped = (name: string, detail: string): Check => ({ name, result: 'skipped', detail });
