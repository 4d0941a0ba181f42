export { executePayment } from './execute-payment.workflow.js';
