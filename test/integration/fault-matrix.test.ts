import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentRow } from '../../src/payments/payment.store.js';
import type { AttemptContext } from '../../src/providers/payment-provider.js';
import { markArmed } from '../../src/submission/begin-submission.store.js';
import { recordCreates } from '../../src/submission/create.store.js';
import { closeAbandoned } from '../../src/submission/outcome.store.js';
import { claimAttempts, type Claim } from '../../src/submission/submission.store.js';
import { closeUnclaimed } from '../../src/submission/sweep.store.js';
import { armedFor, EngineRig, live, type LifeEnd, type TestEngine } from '../support/engine.js';
import {
  CRASHES,
  FAULTS,
  LOOKUP_FAULTS,
  LOST,
  nameOf,
  PROFILES,
  rightEnds,
  rightEndsOfLookups,
  type Crash,
  type Letter,
  type Profile,
} from '../support/fault-matrix.js';
import { seedWorker } from '../support/payment-states.js';
import { preparedFor } from '../support/prepared.js';
import type { FaultInput } from '../support/simulator.js';

/**
 * Every class, every fault of the provider, and a worker that dies at every point: a real simulator
 * process, a real Postgres, engines in this process. The simulator's ledger is the judge of "once".
 */

const DEADLINE_MS = 500;
/** Cells at once; each has a payment and a lane of its own. */
const AT_ONCE = 24;
const KEY_LIFE_MS = 3_600_000;

let rig: EngineRig;
const engines = new Map<Profile, TestEngine>();
let keeper: NodeJS.Timeout;
beforeAll(async () => {
  rig = await EngineRig.start();
  for (const profile of PROFILES) {
    const options = {
      // The proof needs two silences ten minutes apart, by the times of their questions: a crowded machine asks late.
      ladderDivisor: 150,
      callDeadlineMs: DEADLINE_MS,
      provider: { profile, descriptor: { maxInFlightMs: 1, settlesWithinMs: 1_500 } },
    };
    engines.set(profile, await rig.engine(options));
  }
  keeper = setInterval(() => void keepLanesOpen(), 200);
});
afterAll(async () => {
  clearInterval(keeper);
  await rig.stop();
});

/** The operator who resumes a lane, and the sweep's step for what was opened before it was paused. */
async function keepLanesOpen(): Promise<void> {
  await closeUnclaimed(rig.db.database);
  await rig.db.query(
    `UPDATE lane SET paused = false WHERE paused AND pause_reason = 'provider_refused_credential'`,
  );
}

const engineOf = (profile: Profile): TestEngine => {
  const engine = engines.get(profile);
  if (!engine) throw new Error(`no engine of class ${profile}`);
  return engine;
};

interface Cell {
  readonly profile: Profile;
  /** Where the fault strikes; `commit` in two phases only. */
  readonly operation: 'submit' | 'commit';
  readonly fault: FaultInput;
  readonly group: (typeof FAULTS)[number][1];
  readonly crash: Crash;
}

interface Outcome {
  readonly cell: Cell;
  readonly letter: Letter;
  readonly charges: number;
  readonly complaints: readonly string[];
}

const LETTERS: Partial<Record<LifeEnd, Letter>> = { succeeded: 'S', failed: 'F', needs_review: 'R' };

async function runCell(cell: Cell): Promise<Outcome> {
  const on = engineOf(cell.profile);
  const lane = await rig.addLane({});
  // The absence proof looks for an object that is known to be there.
  const mayNeedProof =
    cell.profile === 'C' || (cell.profile === 'A' && nameOf(cell.fault).includes('stored'));
  if (mayNeedProof) expect(await live(on, await rig.pay({ lane }))).toBe('succeeded');
  const payment = await rig.pay({ lane });
  await rig.simulator.plan({ scripts: [{ reference: payment.id, [cell.operation]: [cell.fault] }] });
  await die(on, payment, cell);
  const end = await live(on, payment);
  return { cell, ...(await judge(payment, end, rightEnds(cell.profile, cell.group, cell.crash))) };
}

/** What is wrong with the end of a payment, by the ledger first. */
async function judge(
  payment: PaymentRow,
  end: LifeEnd,
  right: readonly Letter[],
): Promise<Omit<Outcome, 'cell'>> {
  const letter = LETTERS[end];
  const charges = (await rig.simulator.effects(payment.id)).count;
  const complaints: string[] = [];
  if (!letter) complaints.push(`ended ${end}`);
  else if (!right.includes(letter)) complaints.push(`ended ${letter}, right is ${right.join(' or ')}`);
  if (charges > 1) complaints.push(`paid ${charges} times`);
  if (letter === 'S' && charges !== 1) complaints.push('succeeded, and nothing was paid');
  if (letter === 'F' && charges !== 0) complaints.push('failed, and was paid');
  if (!(await isExplained(payment))) complaints.push('nothing says why');
  if (letter === 'R' && (await rig.openCases(payment.id)).length !== 1) complaints.push('no case');
  return { letter: letter ?? 'R', charges, complaints };
}

/** Evidence says how it ended, or the attempts do: one that nobody heard of is closed as abandoned. */
async function isExplained({ id }: PaymentRow): Promise<boolean> {
  const attempts = await rig.attempts(id);
  return (
    (await rig.evidence(id)).length > 0 ||
    attempts.every(({ evidence, code }) => evidence !== null && code !== null)
  );
}

/** The first worker's part of the life, up to where it dies. */
async function die(on: TestEngine, payment: PaymentRow, { crash, operation }: Cell): Promise<void> {
  if (crash === 'none') return;
  const worker = await seedWorker(rig.db.database);
  if (crash === 'before_gate') await markArmed(rig.db.database, [payment.id], worker);
  else await on.services.begin.beginSubmission(armedFor(payment));
  if (crash === 'after_fence' || crash === 'after_answer') {
    let claim = await claimBy(worker, payment);
    if (operation === 'commit') {
      const made = await on.provider.submit(preparedFor(on, payment).submission, contextOf(claim));
      const { paymentId, generation, no, owner } = claim;
      const told = {
        paymentId,
        generation,
        no,
        owner,
        capabilityClass: 'T',
        phase: 'submit',
        result: made,
      } as const;
      expect(await recordCreates(rig.db.database, [told])).toMatchObject([{ next: 'commit' }]);
      claim = await claimBy(worker, payment);
    }
    if (crash === 'after_answer') await call(on, payment, claim);
  }
  await rig.db.query(`UPDATE worker SET lease_expires_at = clock_timestamp() WHERE id = $1`, [worker]);
  await closeAbandoned(rig.db.database, [payment.id], 'sweep');
}

async function claimBy(worker: string, payment: PaymentRow): Promise<Claim> {
  const claim = (await claimAttempts(rig.db.database, [payment.id], worker, KEY_LIFE_MS)).get(payment.id);
  if (!claim) throw new Error(`the dying worker of ${payment.id} could claim nothing`);
  return claim;
}

const contextOf = (claim: Claim): AttemptContext => ({
  paymentId: claim.paymentId,
  generation: claim.generation,
  attempt: claim.no,
  providerKey: claim.providerKey,
  commitTry: claim.commitTry,
  deadlineMs: DEADLINE_MS,
  mayWrite: () => true,
});

/** The call whose answer nobody writes down. */
async function call(on: TestEngine, payment: PaymentRow, claim: Claim): Promise<void> {
  const prepared = preparedFor(on, payment).submission;
  if (claim.phase === 'submit') await on.provider.submit(prepared, contextOf(claim));
  else await on.provider.commit(prepared, claim.commitTarget ?? '', contextOf(claim));
}

async function runAll(cells: readonly Cell[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let next = 0;
  const runner = async (): Promise<void> => {
    for (let cell = cells[next++]; cell; cell = cells[next++]) outcomes.push(await runCell(cell));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runner));
  return outcomes;
}

/** One line a fault, one column a crash point: the end and how often the ledger saw it paid. */
function tableOf(title: string, outcomes: readonly Outcome[]): string {
  const found = (name: string, crash: Crash): string => {
    const of = outcomes.find((o) => nameOf(o.cell.fault) === name && o.cell.crash === crash);
    return of ? `${of.letter}${of.charges}${of.complaints.length > 0 ? '!' : ''}` : '-';
  };
  const names = [...new Set(outcomes.map((o) => nameOf(o.cell.fault)))];
  const row = (head: string, cells: readonly string[]): string =>
    `  ${head.padEnd(28)}${cells.map((text) => text.padEnd(14)).join('')}`;
  return [
    `\n${title}: S succeeded, F failed, R in review; the number is what the ledger saw paid`,
    row('', CRASHES),
    ...names.map((name) =>
      row(
        name,
        CRASHES.map((crash) => found(name, crash)),
      ),
    ),
    '',
  ].join('\n');
}

const cellsOf = (profile: Profile, operation: Cell['operation']): readonly Cell[] =>
  FAULTS.flatMap(([fault, group]) => CRASHES.map((crash) => ({ profile, operation, fault, group, crash })));

/** An unknown outcome whose lookups go wrong. @returns one line of the table, and what is wrong in it. */
async function runLookups(
  profile: Profile,
  fault: FaultInput,
): Promise<{ readonly line: string; readonly wrong: readonly string[] }> {
  const on = engineOf(profile);
  const operation = profile === 'T' ? 'commit' : 'submit';
  const wrong: string[] = [];
  let line = `  ${nameOf(fault).padEnd(28)}`;
  for (const lost of LOST) {
    // Two hits pause the lane until a person looks.
    const lane = await rig.addLane({});
    if (profile === 'C') expect(await live(on, await rig.pay({ lane }))).toBe('succeeded');
    const payment = await rig.pay({ lane });
    // Class C looks before it sends, too: the first answer is an honest one.
    const lookup = profile === 'C' ? ['none', fault] : [fault];
    await rig.simulator.plan({ scripts: [{ reference: payment.id, [operation]: [lost], lookup }] });
    const end = await live(on, payment);
    const { letter, charges, complaints } = await judge(payment, end, rightEndsOfLookups(profile, lost));
    line += `${letter}${charges}${complaints.length > 0 ? '!' : ''}`.padEnd(14);
    wrong.push(...complaints.map((complaint) => `${nameOf(fault)} after ${lost}: ${complaint}`));
  }
  return { line, wrong };
}

const MATRICES: readonly (readonly [string, Profile, Cell['operation']])[] = [
  ['class A', 'A', 'submit'],
  ['class B', 'B', 'submit'],
  ['class C', 'C', 'submit'],
  ['class D', 'D', 'submit'],
  ['class T, faults of the create', 'T', 'submit'],
  ['class T, faults of the commit', 'T', 'commit'],
];

describe('the fault matrix', () => {
  it.each(MATRICES)(
    '%s: pays at most once and ends right under every fault at every crash point (DC-01, UO-01, UO-02, UO-03, CR-01)',
    async (title, profile, operation) => {
      const outcomes = await runAll(cellsOf(profile, operation));
      process.stdout.write(tableOf(title, outcomes));
      const wrong = outcomes
        .filter((o) => o.complaints.length > 0)
        .map((o) => `${nameOf(o.cell.fault)} / ${o.cell.crash}: ${o.complaints.join('; ')}`);
      expect(wrong).toEqual([]);
      expect(await rig.breaches()).toEqual([]);
    },
    240_000,
  );

  it.each(['A', 'C', 'T'] as const)(
    'class %s: a lookup that lies or fails once leads to no second payment and to no wrong end (UO-03)',
    async (profile) => {
      const rows = await Promise.all(LOOKUP_FAULTS.map((fault) => runLookups(profile, fault)));
      const head = `  ${''.padEnd(28)}${LOST.map((lost) => lost.padEnd(14)).join('')}`;
      process.stdout.write(
        [`\nclass ${profile}, faults of lookups`, head, ...rows.map((row) => row.line), ''].join('\n'),
      );
      expect(rows.flatMap((row) => row.wrong)).toEqual([]);
      expect(await rig.breaches()).toEqual([]);
    },
    240_000,
  );
});
