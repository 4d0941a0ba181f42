import type { Sql } from '../persistence/database.js';
import type { SignedAnchor } from './anchor.js';
import { CopyWriter, newestCopy } from './anchor-copies.js';
import { readAnchors, readLeaves } from './anchor.store.js';

const ANCHORS_AT_ONCE = 100;

export type CopyRun =
  | { readonly kind: 'copied'; readonly count: number }
  /** The newest copy is no anchor of this database: anchors were removed here, or it is an older copy. */
  | { readonly kind: 'ahead'; readonly no: number }
  /** An anchor has another digest here than in the copies. */
  | { readonly kind: 'differs'; readonly no: number };

/**
 * Appends to the folder what it lacks, from whichever worker's anchors. The caller holds the anchor lock,
 * so that two workers may share a folder. Nothing is appended to copies that tell of another history.
 * @throws faults of storage and of the file system; what is whole stays, call again.
 */
export async function copyAnchors(sql: Sql, folder: string): Promise<CopyRun> {
  const writer = new CopyWriter(folder);
  const newest = await newestOf(folder);
  const conflict = newest && (await conflictWith(sql, newest, writer));
  if (conflict) return conflict;
  let count = 0;
  for (let next = (newest?.no ?? 0) + 1; ;) {
    const anchors = await readAnchors(sql, next, ANCHORS_AT_ONCE);
    for (const anchor of anchors) await writer.append(anchor, readLeaves(sql, anchor.no));
    count += anchors.length;
    next += anchors.length;
    if (anchors.length < ANCHORS_AT_ONCE) return { kind: 'copied', count };
  }
}

async function newestOf(folder: string): Promise<SignedAnchor | null> {
  try {
    return await newestCopy(folder);
  } catch (error) {
    // The first copy makes the folder.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Compares the newest copy with the database, and adds the signatures that it got since. */
async function conflictWith(sql: Sql, newest: SignedAnchor, writer: CopyWriter): Promise<CopyRun | null> {
  const [here] = await readAnchors(sql, newest.no, 1);
  if (here?.no !== newest.no) return { kind: 'ahead', no: newest.no };
  if (here.digest !== newest.digest) return { kind: 'differs', no: newest.no };
  const known = new Set(newest.signatures.map(({ keyId }) => keyId));
  for (const signature of here.signatures) {
    if (!known.has(signature.keyId)) await writer.appendSignature(newest, signature);
  }
  return null;
}
