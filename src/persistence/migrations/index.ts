import { CreatePayments1796000000000 } from './1796000000000-create-payments.js';
import { AddClassDConsent1796050000000 } from './1796050000000-add-class-d-consent.js';
import { AddLaneBreaker1796100000000 } from './1796100000000-add-lane-breaker.js';
import { AddCapabilityClasses1796150000000 } from './1796150000000-add-capability-classes.js';
import { AddResolutions1796200000000 } from './1796200000000-add-resolutions.js';
import { AddWebhookInbox1796300000000 } from './1796300000000-add-webhook-inbox.js';
import { AddSettlement1796400000000 } from './1796400000000-add-settlement.js';
import { LimitApiKeys1796450000000 } from './1796450000000-limit-api-keys.js';
import { AddDatabaseRoles1796500000000 } from './1796500000000-add-database-roles.js';
import { AddAuditLog1796520000000 } from './1796520000000-add-audit-log.js';
import { AddAnchors1796520000001 } from './1796520000001-add-anchors.js';
import { AddDataKeys1796530000000 } from './1796530000000-add-data-keys.js';
import { AddRateLimits1796540000000 } from './1796540000000-add-rate-limits.js';
import { AddClientWebhooks1796550000000 } from './1796550000000-add-client-webhooks.js';
import { RetireKeyEncryptionKeys1796570000000 } from './1796570000000-retire-key-encryption-keys.js';
import { AddRevokedPeople1796580000000 } from './1796580000000-add-revoked-people.js';

/** Every migration, oldest first. Listed by hand: a file that is not here does not run. */
export const MIGRATIONS = [
  CreatePayments1796000000000,
  AddClassDConsent1796050000000,
  AddLaneBreaker1796100000000,
  AddCapabilityClasses1796150000000,
  AddResolutions1796200000000,
  AddWebhookInbox1796300000000,
  AddSettlement1796400000000,
  LimitApiKeys1796450000000,
  AddDatabaseRoles1796500000000,
  AddAuditLog1796520000000,
  AddAnchors1796520000001,
  AddDataKeys1796530000000,
  AddRateLimits1796540000000,
  AddClientWebhooks1796550000000,
  RetireKeyEncryptionKeys1796570000000,
  AddRevokedPeople1796580000000,
];
