import { ApiKey } from './api-key.entity.js';
import { AuditAnchorLeaf } from './audit-anchor-leaf.entity.js';
import { AuditAnchor, AuditAnchorSignature } from './audit-anchor.entity.js';
import { AuditLogEntry } from './audit-log.entity.js';
import { DataKey } from './data-key.entity.js';
import { DueSlot } from './due-slot.entity.js';
import { EvidenceEntry } from './evidence.entity.js';
import { Lane } from './lane.entity.js';
import { OutboxEntry } from './outbox.entity.js';
import { PaymentReturn } from './payment-return.entity.js';
import { PaymentTransition } from './payment-transition.entity.js';
import { Payment } from './payment.entity.js';
import { RateLimitBucket } from './rate-limit-bucket.entity.js';
import { RateLimitSetting } from './rate-limit.entity.js';
import { Resolution } from './resolution.entity.js';
import { RetiredKeyEncryptionKey } from './retired-key-encryption-key.entity.js';
import { ReviewCase } from './review-case.entity.js';
import { RevokedPerson } from './revoked-person.entity.js';
import { Setting } from './setting.entity.js';
import { SettlementCount } from './settlement-count.entity.js';
import { SettlementFault } from './settlement-fault.entity.js';
import { SettlementFile } from './settlement-file.entity.js';
import { SettlementMissing } from './settlement-missing.entity.js';
import { SettlementRow } from './settlement-row.entity.js';
import { SubmissionAttempt } from './submission-attempt.entity.js';
import { Submission } from './submission.entity.js';
import { Tenant } from './tenant.entity.js';
import { WebhookDelivery } from './webhook-delivery.entity.js';
import { WebhookEndpoint } from './webhook-endpoint.entity.js';
import { WebhookInboxEntry } from './webhook-inbox.entity.js';
import { Worker } from './worker.entity.js';

/**
 * Every table as TypeORM sees it. They describe the shape of the schema, which a test compares
 * with what the migrations build; hot statements are written out elsewhere. A Date here is cut to
 * milliseconds: what guards money compares times in SQL.
 */
export const ENTITIES = [
  Tenant,
  ApiKey,
  Lane,
  Payment,
  PaymentTransition,
  Submission,
  SubmissionAttempt,
  EvidenceEntry,
  ReviewCase,
  Resolution,
  PaymentReturn,
  Worker,
  OutboxEntry,
  DataKey,
  RetiredKeyEncryptionKey,
  RevokedPerson,
  RateLimitSetting,
  RateLimitBucket,
  DueSlot,
  Setting,
  AuditLogEntry,
  AuditAnchor,
  AuditAnchorSignature,
  AuditAnchorLeaf,
  WebhookInboxEntry,
  WebhookEndpoint,
  WebhookDelivery,
  SettlementFile,
  SettlementRow,
  SettlementFault,
  SettlementMissing,
  SettlementCount,
];
