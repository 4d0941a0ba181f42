import { createReadStream } from 'node:fs';
import { mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AnchorLeaf, AnchorSignature, SignedAnchor } from './anchor.js';

/*
 * Copies of anchors outside the database: a file for each day of the database's clock, only ever
 * appended to. Lines:
 *
 *   anchor {…}                    an anchor with its signatures, the cut as text
 *   leaf <payment> <version> <hash>
 *   end <no>                      the anchor before is whole; without it a process died while writing
 *   signature <no> {…}            one that was made later, by the next key
 */

const FILE = /^anchors-\d{4}-\d\d-\d\d\.txt$/;
const LINE_END = /\r?\n/;
const fileOf = ({ at }: SignedAnchor): string => `anchors-${at.slice(0, 10)}.txt`;

/** A copy that is read, in the order of the files. Leaves come between `anchor` and `end`. */
export type CopyLine =
  | { readonly kind: 'anchor'; readonly anchor: SignedAnchor }
  | { readonly kind: 'leaf'; readonly leaf: AnchorLeaf }
  | { readonly kind: 'end'; readonly no: number }
  | { readonly kind: 'signature'; readonly no: number; readonly signature: AnchorSignature }
  | { readonly kind: 'unreadable' };

/** The files of the folder, oldest first. @throws the system's error when there is no such folder. */
export async function anchorFiles(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => FILE.test(name)).sort();
}

/** Longer than any line; what goes on past it is none of ours (characters). */
const MOST_LINE_CHARS = 1_048_576;

/** Reads the lines of the copies in portions, whatever their size. @param files names in the folder, in order. */
export async function* readCopies(
  folder: string,
  files: readonly string[],
): AsyncGenerator<readonly CopyLine[], void, void> {
  for (const name of files) {
    let carry = '';
    for await (const chunk of createReadStream(join(folder, name), { encoding: 'utf8' })) {
      const lines = (carry + (chunk as string)).split(LINE_END);
      carry = lines.pop() ?? '';
      if (carry.length > MOST_LINE_CHARS) carry = 'too long';
      yield lines.filter((line) => line !== '').map(lineOf);
    }
    if (carry !== '') yield [lineOf(carry)];
  }
}

function lineOf(line: string): CopyLine {
  const [word = '', rest = ''] = splitOnce(line);
  try {
    if (word === 'anchor') {
      const { cut, ...anchor } = JSON.parse(rest) as SignedAnchor & { readonly cut: string };
      return { kind: 'anchor', anchor: { ...anchor, cut: BigInt(cut) } };
    }
    if (word === 'leaf') {
      const [paymentId = '', version = '', hash = ''] = rest.split(' ');
      return { kind: 'leaf', leaf: { paymentId, version: Number(version), hash } };
    }
    if (word === 'end') return { kind: 'end', no: Number(rest) };
    if (word === 'signature') {
      const [no = '', json = ''] = splitOnce(rest);
      return { kind: 'signature', no: Number(no), signature: JSON.parse(json) as AnchorSignature };
    }
  } catch {
    // The end of a file whose writer died; whoever reads says what is missing then.
  }
  return { kind: 'unreadable' };
}

function splitOnce(text: string): readonly string[] {
  const at = text.indexOf(' ');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** The end of a file is read first: a day's leaves may be many (bytes). */
const TAIL_BYTES = 1_048_576;

/** The newest whole anchor among the copies with its signatures, or null when there is none. */
export async function newestCopy(folder: string): Promise<SignedAnchor | null> {
  for (const name of (await anchorFiles(folder)).toReversed()) {
    const file = await open(join(folder, name), 'r');
    try {
      const { size } = await file.stat();
      for (let length = Math.min(size, TAIL_BYTES); ; length = Math.min(size, length * 8)) {
        const tail = Buffer.alloc(length);
        await file.read(tail, 0, length, size - length);
        const newest = newestOf(tail.toString('utf8'));
        if (newest) return newest;
        if (length === size) break;
      }
    } finally {
      await file.close();
    }
  }
  return null;
}

/** The first line may be half of one: then it is unreadable and means nothing. */
function newestOf(text: string): SignedAnchor | null {
  let begun: SignedAnchor | null = null;
  let newest: SignedAnchor | null = null;
  for (const each of text.split('\n')) {
    const line = lineOf(each);
    if (line.kind === 'anchor') begun = line.anchor;
    if (line.kind === 'end' && begun?.no === line.no) newest = begun;
    if (line.kind === 'signature' && newest?.no === line.no) newest = withSignature(newest, line);
  }
  return newest;
}

function withSignature(
  anchor: SignedAnchor,
  { signature }: { readonly signature: AnchorSignature },
): SignedAnchor {
  return { ...anchor, signatures: [...anchor.signatures, signature] };
}

/** Appends whole anchors, and signatures that came later. The folder is made when it is missing. */
export class CopyWriter {
  constructor(private readonly folder: string) {}

  /** @param leaves in the order of the tree. Returns when the system has stored it. Twice: it stands there twice. */
  async append(anchor: SignedAnchor, leaves: AsyncIterable<readonly AnchorLeaf[]>): Promise<void> {
    await this.write(fileOf(anchor), async (line) => {
      await line(`anchor ${JSON.stringify({ ...anchor, cut: anchor.cut.toString() })}\n`);
      for await (const some of leaves) {
        await line(some.map((leaf) => `leaf ${leaf.paymentId} ${leaf.version} ${leaf.hash}\n`).join(''));
      }
      await line(`end ${anchor.no}\n`);
    });
  }

  async appendSignature(anchor: SignedAnchor, signature: AnchorSignature): Promise<void> {
    await this.write(fileOf(anchor), (line) => line(`signature ${anchor.no} ${JSON.stringify(signature)}\n`));
  }

  private async write(
    name: string,
    work: (line: (text: string) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const file = await open(join(this.folder, name), 'a', 0o600);
    try {
      // What a dead writer left half may lack its line feed.
      await file.appendFile('\n');
      await work((text) => file.appendFile(text));
      await file.datasync();
    } finally {
      await file.close();
    }
  }
}
