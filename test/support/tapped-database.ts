import { Database, type Rows, type Sql, type Statement } from '../../src/persistence/database.js';

/**
 * Stands around one statement: may run it before, after, twice or not at all, hold it, or put
 * another answer in place of its own.
 */
export type Tap = (
  run: () => Promise<Rows<unknown>>,
  values: readonly unknown[],
) => Promise<Rows<unknown>> | Promise<never>;

/** The product's way to Postgres, with taps on statements by their name: faults come at a chosen place. */
export class TappedDatabase extends Database {
  private readonly taps = new Map<string, Tap>();
  /** How often each statement was asked for, by name. */
  readonly asked = new Map<string, number>();

  /** @returns what takes the tap away again. A second tap of one name replaces the first. */
  tap(statement: string, tap: Tap): () => void {
    this.taps.set(statement, tap);
    return () => this.taps.delete(statement);
  }

  override query<R>(statement: Statement, values: readonly unknown[] = []): Promise<Rows<R>> {
    return this.through(statement, values, () => super.query<R>(statement, values));
  }

  override transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
    return super.transaction((tx) =>
      work({
        query: <R>(statement: Statement, values: readonly unknown[] = []) =>
          this.through(statement, values, () => tx.query<R>(statement, values)),
      }),
    );
  }

  private through<R>(
    { name }: Statement,
    values: readonly unknown[],
    run: () => Promise<Rows<R>>,
  ): Promise<Rows<R>> {
    this.asked.set(name, (this.asked.get(name) ?? 0) + 1);
    const tap = this.taps.get(name);
    return tap ? (tap(run as () => Promise<Rows<unknown>>, values) as Promise<Rows<R>>) : run();
  }
}

/** Something that others wait for until the test opens it. */
export class Latch {
  private readonly opened: Promise<void>;
  open!: () => void;

  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }

  wait(): Promise<void> {
    return this.opened;
  }
}
