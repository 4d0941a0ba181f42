import type { CapabilityClass } from '../providers/provider-descriptor.js';
import type { Sql, Statement } from '../persistence/database.js';
import type { PreparedSubmission } from '../providers/payment-provider.js';

const PROVE: Statement = {
  name: 'generation-prove',
  text: `UPDATE submission SET proof = $3, closed_evidence = coalesce(closed_evidence, $4)
    WHERE payment_id = $1 AND generation = $2 AND proof IS NULL`,
};

const OPEN: Statement = {
  name: 'generation-open',
  text: `INSERT INTO submission (payment_id, generation, provider_key, parameters, parameters_key_id, parameters_sha256,
      adapter, adapter_version, api_version, credential_id, account, base_url, capability_class)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
};

export interface NewGeneration {
  readonly paymentId: string;
  /** The generation that was proven not executed; the next one opens. */
  readonly proven: number;
  readonly proof: { readonly resolutionId: string; readonly kind: string };
  readonly providerKey: string;
  readonly submission: PreparedSubmission;
  readonly capabilityClass: CapabilityClass;
  readonly parameters: Buffer;
  readonly parametersKeyId: string;
}

/**
 * Closes a generation by its proof and opens the next, under a key of its own and without an attempt:
 * the worker opens that. Runs in the transaction of T19.
 * @throws the unique violation of Postgres when the next generation exists.
 */
export async function openGeneration(tx: Sql, of: NewGeneration): Promise<void> {
  const { submission } = of;
  await tx.query(PROVE, [of.paymentId, of.proven, `resolution ${of.proof.resolutionId}`, of.proof.kind]);
  await tx.query(OPEN, [
    of.paymentId,
    of.proven + 1,
    of.providerKey,
    of.parameters,
    of.parametersKeyId,
    Buffer.from(submission.parametersSha256, 'hex'),
    submission.adapter,
    submission.adapterVersion,
    submission.apiVersion,
    submission.credentialId,
    submission.account,
    submission.baseUrl,
    of.capabilityClass,
  ]);
}
