import { CreatePayments1796000000000 } from './1796000000000-create-payments.js';

/** Every migration, oldest first. Listed by hand: a file that is not here does not run. */
export const MIGRATIONS = [CreatePayments1796000000000];
