import { assertNever } from '../domain/assert.js';
import { DomainError } from '../domain/domain-error.js';
import type { IdempotencyKey } from '../domain/idempotency-key.js';
import { instantToPostgres } from '../domain/instant.js';
import { paymentId, providerKey, type PaymentId } from '../domain/payment-id.js';
import { FINGERPRINT_VERSION, requestFingerprint } from '../domain/request-fingerprint.js';
import type { DestinationCipher } from '../encryption/destination-cipher.js';
import { laneName } from '../lanes/lane.store.js';
import { idempotencyTotal, transitionsTotal } from '../metrics/metrics.js';
import type { OutboxNudge } from '../outbox/outbox-nudge.js';
import { LockTimeout } from '../persistence/database-errors.js';
import { DATABASE_LIMITS, type TenantDatabase } from '../persistence/database.js';
import { sha1, sha256 } from '../platform/sha256.js';
import { PrepareRefused, type PaymentProvider } from '../providers/payment-provider.js';
import { capabilityClass } from '../providers/provider-descriptor.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import { InFlight, StillInFlight } from './in-flight.js';
import { reading } from './payment-lifecycle.service.js';
import { findPaymentByKey, insertPayment, type InsertResult, type PaymentRow } from './payment.store.js';
import type { CreatePaymentCommand } from './schemas/create-payment.schema.js';

export interface CreateRequest {
  readonly tenantId: string;
  readonly actor: string;
  readonly key: IdempotencyKey;
  readonly command: CreatePaymentCommand;
}

/** created: this request's payment. replayed: the payment that its key belongs to, as it is now. */
export interface CreateResult {
  readonly kind: 'created' | 'replayed';
  readonly row: PaymentRow;
}

export interface IntakeOptions {
  readonly db: TenantDatabase;
  readonly providers: ProviderRegistry;
  readonly cipher: DestinationCipher;
  readonly outbox: OutboxNudge;
  /** The provider of a payment whose create names none. */
  readonly defaultProvider: string;
  /** How far ahead execute_at may lie, in days on the database's clock. */
  readonly horizonDays: number;
}

/** Accepts payments: T1, or the payment that the idempotency key already belongs to. */
export class PaymentIntake {
  /** As long as the database itself waits for an insert in flight. */
  private readonly inFlight = new InFlight(DATABASE_LIMITS.lockMs);

  constructor(private readonly options: IntakeOptions) {}

  /**
   * One statement and one commit. Whatever depends on the clock, a limit or a provider is refused
   * only when the key is new, so that a repeat is a replay however late it comes.
   * @throws DomainError `idempotency_key_reused`, `idempotency_key_in_use`, `execute_at_in_past`,
   * `beyond_horizon`, `not_after_before_execute_at`, `provider_unknown`, `provider_not_allowed`,
   * `amount_below_limit`, `amount_above_limit`, `currency_unsupported`, `destination_unsupported`;
   * StorageUnavailable when nothing was stored, OutcomeUnknown when it may have been: repeat with the same key.
   * Twice: the second call is a replay.
   */
  async create(request: CreateRequest): Promise<CreateResult> {
    const id = paymentId({ tenant: request.tenantId, key: request.key, sha256 });
    try {
      return await this.inFlight.run(id, () => this.insertOrReplay(id, request));
    } catch (error) {
      if (!(error instanceof LockTimeout) && !(error instanceof StillInFlight)) throw error;
      idempotencyTotal.add({ result: 'in_use' });
      throw new DomainError('idempotency_key_in_use', { cause: error });
    }
  }

  private async insertOrReplay(id: PaymentId, request: CreateRequest): Promise<CreateResult> {
    const provider = this.providerFor(id, request.command);
    if (provider instanceof DomainError) return this.replayOr(provider, request);
    const result = await this.insert(id, provider, request);
    if (result.kind !== 'inserted') return this.replayOr(refusalOf(result), request);
    this.options.outbox.nudge();
    idempotencyTotal.add({ result: 'created' });
    transitionsTotal.add({ from: 'none', to: 'scheduled', cause: 'create' });
    return { kind: 'created', row: result.row };
  }

  /** The provider that can express this payment, or why none can. Sends nothing. */
  private providerFor(id: PaymentId, command: CreatePaymentCommand): PaymentProvider | DomainError {
    const provider = this.options.providers.get(command.provider ?? this.options.defaultProvider);
    if (!provider) return new DomainError('provider_unknown');
    const { minMinor, maxMinor } = provider.capabilities().amount;
    const { amountMinor, currency } = command.money;
    if (amountMinor < minMinor) return new DomainError('amount_below_limit');
    if (amountMinor > maxMinor) return new DomainError('amount_above_limit');
    try {
      provider.prepare({
        paymentId: id,
        generation: 1,
        providerKey: providerKey(id, 1, sha1),
        amountMinor,
        currency,
        destination: command.destination,
        reference: command.reference ?? null,
        description: command.description ?? null,
      });
    } catch (error) {
      if (error instanceof PrepareRefused) return prepareRefusal(error);
      throw error;
    }
    return provider;
  }

  private async insert(
    id: PaymentId,
    provider: PaymentProvider,
    request: CreateRequest,
  ): Promise<InsertResult> {
    const { tenantId, actor, key, command } = request;
    const { cipher, db, horizonDays } = this.options;
    const { destination } = command;
    const digested = cipher.digests.digest(destination);
    const place = { tenant: tenantId, paymentId: id, field: 'destination' } as const;
    const sealed = await cipher.encrypt({ ...place, plaintext: destination });
    return insertPayment(db.ofTenant(tenantId), {
      id,
      tenantId,
      idempotencyKey: key,
      fingerprint: fingerprintOf(command, digested.digest, FINGERPRINT_VERSION),
      fingerprintVersion: FINGERPRINT_VERSION,
      amount: command.money.amountMinor,
      currency: command.money.currency,
      destination: sealed.ciphertext,
      destinationKeyId: sealed.keyId,
      destinationDigest: digested.digest,
      digestKeyId: digested.keyId,
      provider: provider.name,
      lane: laneName(provider),
      reference: command.reference ?? null,
      description: command.description ?? null,
      metadata: command.metadata ?? null,
      executeAt: command.executeAt === 'now' ? null : instantToPostgres(command.executeAt),
      notAfter: command.notAfter === undefined ? null : instantToPostgres(command.notAfter),
      actor,
      horizonDays,
      needsClassDConsent: capabilityClass(provider.capabilities()) === 'D',
    });
  }

  /** The payment of this key when the content is equal; without one, the refusal. */
  private async replayOr(refusal: DomainError | null, request: CreateRequest): Promise<CreateResult> {
    const { tenantId, key, command } = request;
    const row = await reading(() => findPaymentByKey(this.options.db.ofTenant(tenantId), tenantId, key));
    if (!row) throw refusal ?? new Error('a key that could not be inserted has no payment');
    // Compared in the terms of the stored row: its digest key and its version of the canonical text.
    const { digest } = this.options.cipher.digests.digestWith(row.digest_key_id, command.destination);
    const fingerprint = fingerprintOf(command, digest, row.fingerprint_version);
    if (!fingerprint.equals(row.fingerprint)) {
      idempotencyTotal.add({ result: 'reused' });
      throw new DomainError('idempotency_key_reused');
    }
    idempotencyTotal.add({ result: 'replayed' });
    return { kind: 'replayed', row };
  }
}

function fingerprintOf(command: CreatePaymentCommand, digest: Buffer, version: number): Buffer {
  const { destination: _, ...rest } = command;
  return Buffer.from(
    requestFingerprint({ ...rest, destinationDigest: digest.toString('hex') }, version, sha256),
  );
}

function refusalOf(result: Exclude<InsertResult, { kind: 'inserted' }>): DomainError | null {
  switch (result.kind) {
    case 'exists':
      return null;
    case 'in_past':
      return new DomainError('execute_at_in_past');
    case 'beyond_horizon':
      return new DomainError('beyond_horizon');
    case 'not_after_too_early':
      return new DomainError('not_after_before_execute_at');
    case 'class_d_not_allowed':
      return new DomainError('provider_not_allowed');
    case 'class_d_above_cap':
      return new DomainError('amount_above_limit');
    default:
      return assertNever(result);
  }
}

/** An adapter's code begins with the member that it cannot express. */
function prepareRefusal({ code }: PrepareRefused): DomainError {
  const extra = { provider_code: code };
  if (code.startsWith('currency')) return new DomainError('currency_unsupported', { extra });
  if (code.startsWith('amount')) return new DomainError('amount_above_limit', { extra });
  return new DomainError('destination_unsupported', { extra });
}
