import { providerKey, type PaymentId } from '../domain/payment-id.js';
import type { ArmHint, NotDue } from '../../workflows/contract.js';
import { unreadableCode } from '../encryption/unreadable.js';
import type { Sql } from '../persistence/database.js';
import { sha1 } from '../platform/sha256.js';
import { PrepareRefused, type PaymentProvider } from '../providers/payment-provider.js';
import { capabilityClass } from '../providers/provider-descriptor.js';
import type { ArmedEntry, Loaded } from './armed-payments.js';
import { Batcher } from './batcher.js';
import type { Prepared } from './begin-submission.store.js';
import { readInstructions, readStandings, type Instruction, type Standing } from './submission.store.js';

/** The pair is armed this long before the due time. */
export const ARM_LEAD_MS = 3_000;

/** A destination as stored, with what ties it to its row. */
export type EncryptedDestination = Pick<
  Instruction,
  'id' | 'tenant_id' | 'destination' | 'destination_key_id' | 'destination_digest' | 'digest_key_id'
>;

/** Opens and seals what is stored encrypted; bound to the encryption folder by the worker. */
export interface SubmissionCipher {
  /**
   * @throws what `unreadableCode` knows when the stored destination cannot be opened or does not match its
   * digest; faults of storage when a key has to be read.
   */
  openDestination(of: EncryptedDestination): Promise<string>;
  sealParameters(of: {
    readonly tenantId: string;
    readonly paymentId: string;
    readonly text: string;
  }): Promise<{ readonly keyId: string; readonly ciphertext: Buffer }>;
  /** @throws as `openDestination`, and when the stored parameters do not match their SHA-256. */
  openParameters(of: {
    readonly tenantId: string;
    readonly paymentId: string;
    readonly keyId: string;
    readonly ciphertext: Buffer;
    readonly sha256: Buffer;
  }): Promise<string>;
}

export interface Providers {
  get(name: string): PaymentProvider | undefined;
}

/** The hint that goes with an answer: durations from this reading on, on the database's clock. */
export function hintOf(of: { readonly version: number; readonly due_in_ms: number }): ArmHint {
  const dueInMs = Math.ceil(of.due_in_ms);
  return { version: of.version, dueInMs, armInMs: dueInMs - ARM_LEAD_MS };
}

export function notDue(of: { readonly version: number; readonly due_in_ms: number }): NotDue {
  return { kind: 'not_due', ...hintOf(of) };
}

/** Reads payments in batches and builds their requests ahead of the due time. */
export class ArmingService {
  private readonly instructions: Batcher<string, Instruction | null>;
  private readonly standings: Batcher<string, Standing | null>;

  constructor(
    sql: Sql,
    private readonly providers: Providers,
    private readonly cipher: SubmissionCipher,
    private readonly onPrepareFailed: (paymentId: string, code: string) => void,
  ) {
    this.instructions = new Batcher((ids) => readInstructions(sql, ids), { maxBatch: 500, maxRunning: 1 });
    this.standings = new Batcher((ids) => readStandings(sql, ids), { maxBatch: 500, maxRunning: 1 });
  }

  /** The row as it stands now, or null for an unknown id. */
  standing(paymentId: string): Promise<Standing | null> {
    return this.standings.add(paymentId);
  }

  /** Reads the instruction once for all activities of an entry, and builds the request. */
  load(entry: ArmedEntry): Promise<Loaded> {
    entry.loaded ??= this.loadOnce(entry).catch((error: unknown) => {
      // The next activity of this entry reads again.
      entry.loaded = null;
      throw error;
    });
    return entry.loaded;
  }

  private async loadOnce(entry: ArmedEntry): Promise<Loaded> {
    const instruction = await this.instructions.add(entry.paymentId);
    if (!instruction) return { kind: 'missing' };
    entry.dueAtMs = instruction.due_at_ms;
    if (instruction.state !== 'scheduled')
      return { kind: 'ready', instruction, prepared: null, refusal: null };
    const built = await this.prepare(instruction);
    if (typeof built !== 'string') return { kind: 'ready', instruction, prepared: built, refusal: null };
    this.onPrepareFailed(instruction.id, built);
    return { kind: 'ready', instruction, prepared: null, refusal: built };
  }

  /** @returns the request, or the code of why it cannot be built. @throws faults of storage. */
  private async prepare(instruction: Instruction): Promise<Prepared | string> {
    const provider = this.providers.get(instruction.provider);
    if (!provider) return 'provider_unknown';
    if (provider.account !== instruction.lane_account) return 'other_account';
    let destination: string;
    try {
      destination = await this.cipher.openDestination(instruction);
    } catch (error) {
      // Storage that is away says nothing about the row: only what cannot be opened holds the payment.
      const code = unreadableCode(error);
      if (code === null) throw error;
      return code;
    }
    const key = providerKey(instruction.id as PaymentId, 1, sha1);
    try {
      const submission = provider.prepare({
        paymentId: instruction.id,
        generation: 1,
        providerKey: key,
        amountMinor: instruction.amount,
        currency: instruction.currency,
        destination,
        reference: instruction.reference,
        description: instruction.description,
      });
      const sealed = await this.cipher.sealParameters({
        tenantId: instruction.tenant_id,
        paymentId: instruction.id,
        text: submission.parameters,
      });
      return {
        paymentId: instruction.id,
        providerKey: key,
        submission,
        capabilityClass: capabilityClass(provider.capabilities()),
        parameters: sealed.ciphertext,
        parametersKeyId: sealed.keyId,
      };
    } catch (error) {
      if (error instanceof PrepareRefused) return error.code;
      throw error;
    }
  }
}
