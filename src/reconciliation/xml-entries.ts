import { SaxesParser } from 'saxes';
import { UnusableFile } from './settlement-line.js';

/** An element without its namespace prefix. All content is text: a number is never turned into a float. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  text: string;
  readonly children: XmlElement[];
}

/** One booking with all its transactions; more is no statement that a bank writes. */
const MOST_ENTRY_CHARS = 64 * 1_048_576;
const MOST_DEPTH = 64;

const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/**
 * Every element `entry` of a document, as soon as it ends, in portions; the rest of the document is
 * read and forgotten, so memory is that of one entry. saxes is a streaming parser that checks for
 * well-formedness, knows the five entities of XML and refuses all others; a document type is refused.
 * @param root the local name that the document's first element must have.
 * @throws UnusableFile when the text is not XML, ends early, has another root or a document type.
 * Portions before the fault were given.
 */
export async function* xmlEntries(
  chunks: AsyncIterable<string>,
  { root, entry }: { readonly root: string; readonly entry: string },
): AsyncGenerator<readonly XmlElement[]> {
  const reader = new EntryReader(root, entry);
  for await (const chunk of chunks) {
    const found = reader.write(chunk);
    if (found.length > 0) yield found;
  }
  reader.end();
}

class EntryReader {
  private readonly parser = new SaxesParser();
  /** Open elements from the entry on; empty outside of entries. */
  private readonly open: XmlElement[] = [];
  private depth = 0;
  private chars = 0;
  private found: XmlElement[] = [];

  constructor(root: string, entry: string) {
    this.parser.on('error', () => {
      throw new UnusableFile('The file is no well-formed XML, or it ends early.');
    });
    this.parser.on('doctype', () => {
      throw new UnusableFile('The file has a document type, which no statement has.');
    });
    this.parser.on('opentag', (tag) => {
      const name = localName(tag.name);
      if (this.depth === 0 && name !== root) throw new UnusableFile(`The file's root is not ${root}.`);
      if (++this.depth > MOST_DEPTH) throw new UnusableFile('The file nests deeper than a statement.');
      if (this.open.length > 0 || name === entry) this.push(name, tag.attributes);
    });
    this.parser.on('text', (text) => this.add(text));
    this.parser.on('cdata', (text) => this.add(text));
    this.parser.on('closetag', () => {
      this.depth--;
      const closed = this.open.pop();
      if (closed === undefined || this.open.length > 0) return;
      this.found.push(closed);
      this.chars = 0;
    });
  }

  write(chunk: string): readonly XmlElement[] {
    this.parser.write(chunk);
    const { found } = this;
    this.found = [];
    return found;
  }

  end(): void {
    this.parser.close();
  }

  private push(name: string, attributes: Readonly<Record<string, string>>): void {
    const element: XmlElement = { name, attributes, text: '', children: [] };
    this.open.at(-1)?.children.push(element);
    this.open.push(element);
    this.count(name.length);
  }

  private add(text: string): void {
    const element = this.open.at(-1);
    if (element === undefined) return;
    element.text += text;
    this.count(text.length);
  }

  private count(chars: number): void {
    this.chars += chars;
    if (this.chars > MOST_ENTRY_CHARS)
      throw new UnusableFile('An entry of the file is larger than any booking.');
  }
}

/** The first element at a path of local names, or null. */
export function elementAt(from: XmlElement, ...path: readonly string[]): XmlElement | null {
  let at: XmlElement | null = from;
  for (const name of path) at = at?.children.find((child) => child.name === name) ?? null;
  return at;
}

/** The trimmed text at a path; null when there is none or it is empty. */
export function textAt(from: XmlElement, ...path: readonly string[]): string | null {
  return elementAt(from, ...path)?.text.trim() || null;
}
