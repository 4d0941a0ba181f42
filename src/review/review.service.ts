import { DomainError } from '../domain/domain-error.js';
import { reading } from '../payments/payment-lifecycle.service.js';
import type { TenantDatabase } from '../persistence/database.js';
import {
  closeCase,
  findCase,
  listEvidence,
  listOpenCases,
  ownCase,
  type EvidenceRow,
  type ReviewCaseRow,
} from './review-case.store.js';
import { listResolutions, type ResolutionRow } from './resolution.store.js';

/** A case with everything that a person needs to decide. */
export interface ReviewDetail {
  readonly row: ReviewCaseRow;
  readonly evidence: readonly EvidenceRow[];
  readonly resolutions: readonly ResolutionRow[];
}

/** What people look into: payments in review, and contradictions about final ones. */
export class Reviews {
  constructor(private readonly db: TenantDatabase) {}

  /**
   * Open cases of the tenant, oldest first.
   * @param after the `nextCursor` of the page before; null: from the start.
   * @throws StorageUnavailable.
   */
  async list(
    tenantId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<{ readonly rows: readonly ReviewCaseRow[]; readonly nextCursor: string | null }> {
    const { after, limit } = page;
    const found = await reading(() =>
      listOpenCases(this.db.ofTenant(tenantId), { tenantId, after: after ?? '0', limit: limit + 1 }),
    );
    const rows = found.slice(0, limit);
    return { rows, nextCursor: found.length > limit ? (rows.at(-1)?.case_id ?? null) : null };
  }

  /** The open case of a payment, else its newest. @throws DomainError `not_found`: it never had one. */
  async get(tenantId: string, paymentId: string): Promise<ReviewDetail> {
    const row = await reading(() => findCase(this.db.ofTenant(tenantId), tenantId, paymentId));
    if (!row) throw new DomainError('not_found');
    const [evidence, resolutions] = await Promise.all([
      reading(() => listEvidence(this.db.ofTenant(tenantId), paymentId)),
      reading(() => listResolutions(this.db.ofTenant(tenantId), paymentId)),
    ]);
    return { row, evidence, resolutions };
  }

  /**
   * Takes a case, also from somebody else: shifts change. Twice: the time of taking is the last one.
   * @throws DomainError `not_found`, `not_applicable` when it is closed.
   */
  async own(tenantId: string, paymentId: string, actor: string): Promise<ReviewDetail> {
    const done = await ownCase(this.db.ofTenant(tenantId), tenantId, paymentId, actor);
    const detail = await this.get(tenantId, paymentId);
    if (!done) throw notApplicable(detail.row);
    return detail;
  }

  /**
   * Closes the case of a payment that is not in review: a contradiction that was looked into. Moves
   * nothing. @throws DomainError `not_found`; `not_applicable` for a payment in review, whose case is
   * closed by its resolution, and for a case that is closed: also the second time.
   */
  async close(
    tenantId: string,
    of: { readonly paymentId: string; readonly actor: string; readonly reason: string },
  ): Promise<ReviewDetail> {
    const done = await closeCase(this.db.ofTenant(tenantId), { tenantId, ...of });
    const detail = await this.get(tenantId, of.paymentId);
    if (!done) throw notApplicable(detail.row);
    return detail;
  }
}

function notApplicable({ state, version }: ReviewCaseRow): DomainError {
  return new DomainError('not_applicable', { state, version });
}
