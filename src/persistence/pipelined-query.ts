import pg from 'pg';

/** What this file uses of a connection of the driver, beside its published types. */
interface Wire {
  readonly parsedStatements: Readonly<Record<string, string>>;
  bind(message: { statement: string; values: readonly unknown[] }): void;
  execute(message: object): void;
}

/** The steps of the driver's query that `PipelinedQuery` goes between. */
interface QuerySteps {
  prepare(this: pg.Query, wire: Wire): void;
  handleDataRow(this: pg.Query, message: unknown): void;
  handleCommandComplete(this: pg.Query, message: unknown, wire: Wire): void;
}
const steps = pg.Query.prototype as unknown as QuerySteps;

/** A named statement with its values, as the driver takes it. */
export interface NamedQuery {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * A query that sends another statement ahead of itself: both go out together and are answered together,
 * one round trip for two statements. Outside BEGIN they are one transaction: Postgres ends it at the one
 * Sync behind both. When the first fails, the second does not run.
 *
 * The statement ahead must be prepared on the connection (`isPrepared`): the driver knows of one
 * statement per query. Its rows are dropped.
 */
export class PipelinedQuery extends pg.Query {
  private isAheadDone = false;

  constructor(
    private readonly ahead: Omit<NamedQuery, 'text'>,
    query: NamedQuery,
  ) {
    super({ name: query.name, text: query.text, values: [...query.values] });
  }

  prepare(wire: Wire): void {
    wire.bind({ statement: this.ahead.name, values: this.ahead.values });
    wire.execute({});
    steps.prepare.call(this, wire);
  }

  handleDataRow(message: unknown): void {
    if (this.isAheadDone) steps.handleDataRow.call(this, message);
  }

  handleCommandComplete(message: unknown, wire: Wire): void {
    if (this.isAheadDone) steps.handleCommandComplete.call(this, message, wire);
    this.isAheadDone = true;
  }
}

/** Runs a query behind one that is prepared. Errors are the driver's own. */
export function runPipelined(
  client: pg.PoolClient,
  ahead: Omit<NamedQuery, 'text'>,
  query: NamedQuery,
): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const sent = new PipelinedQuery(ahead, query);
    // The driver's time limit and its cleaning up work on the callback.
    const callback = (error: Error | null, result: pg.QueryResult): void =>
      error ? reject(error) : resolve(result);
    (client.query as (query: PipelinedQuery, callback: unknown) => void).call(client, sent, callback);
  });
}

/** True when the connection has prepared the statement of this name. */
export function isPrepared(client: pg.PoolClient, name: string): boolean {
  return (client as unknown as { connection: Wire }).connection.parsedStatements[name] !== undefined;
}
