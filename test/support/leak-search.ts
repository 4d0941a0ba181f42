import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Every way in which a mark could stand in bytes: itself, as UTF-16, as hex, and inside base64. */
function formsOf(mark: string): readonly Buffer[] {
  const bytes = Buffer.from(mark, 'latin1');
  const inBase64 = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    // Only what the mark alone decides; its neighbours share the characters at both ends.
    return Buffer.from(
      text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)),
    );
  });
  const hex = bytes.toString('hex');
  return [bytes, Buffer.from(mark, 'utf16le'), Buffer.from(hex), Buffer.from(hex.toUpperCase()), ...inBase64];
}

function count(content: Buffer, form: Buffer): number {
  let found = 0;
  for (let at = content.indexOf(form); at >= 0; at = content.indexOf(form, at + form.length)) found++;
  return found;
}

/** How often each mark stands in the content, in whatever form; marks that do not are left out. */
export function hitsIn(content: Buffer | string, marks: readonly string[]): Readonly<Record<string, number>> {
  const bytes = Buffer.from(content as string);
  const hits: Record<string, number> = {};
  for (const mark of marks) {
    const found = formsOf(mark).reduce((sum, form) => sum + count(bytes, form), 0);
    if (found > 0) hits[mark] = found;
  }
  return hits;
}

/** Every file below the folder, or the file itself. */
export function filesOf(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Where marks stand in files: path to mark to count. Files that vanish meanwhile are no evidence. */
export function hitsInFiles(
  paths: readonly string[],
  marks: readonly string[],
): Readonly<Record<string, Readonly<Record<string, number>>>> {
  const found: Record<string, Readonly<Record<string, number>>> = {};
  for (const path of paths) {
    let content: Buffer;
    try {
      content = readFileSync(path);
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ENOENT') continue;
      throw error;
    }
    const hits = hitsIn(content, marks);
    if (Object.keys(hits).length > 0) found[path] = hits;
  }
  return found;
}
