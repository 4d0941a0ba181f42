import { CreatePayments1796000000000 } from './1796000000000-create-payments.js';
import { AddCapabilityClasses1796150000000 } from './1796150000000-add-capability-classes.js';
import { AddResolutions1796200000000 } from './1796200000000-add-resolutions.js';
import { AddWebhookInbox1796300000000 } from './1796300000000-add-webhook-inbox.js';

/** Every migration, oldest first. Listed by hand: a file that is not here does not run. */
export const MIGRATIONS = [
  CreatePayments1796000000000,
  AddCapabilityClasses1796150000000,
  AddResolutions1796200000000,
  AddWebhookInbox1796300000000,
];
