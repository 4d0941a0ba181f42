export { executePayment } from './execute-payment.workflow.js';
export { reconcilePayments } from './reconcile-payments.workflow.js';
