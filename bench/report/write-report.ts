import { writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';

/** Writes a report in the form that the format check asks of every file of the project. */
export async function writeReport(file: string, markdown: string): Promise<void> {
  const options = await resolveConfig(file);
  writeFileSync(file, await format(markdown, { ...options, parser: 'markdown' }));
}
