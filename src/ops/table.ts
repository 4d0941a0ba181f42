import Table from 'cli-table3';

/** Lines between rows would double the height of a list. */
const PLAIN = {
  style: { head: [], border: [] },
  chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
};

/** A table with one row per item. No colours: the text is the same in a pipe. */
export function rowsTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({ ...PLAIN, head: [...head] });
  for (const row of rows) table.push([...row]);
  return table.toString();
}

/** A table of names and values; entries without a value are left out. */
export function factsTable(facts: readonly (readonly [name: string, value: string | null])[]): string {
  const table = new Table(PLAIN);
  for (const [name, value] of facts) if (value !== null) table.push([name, value]);
  return table.toString();
}
