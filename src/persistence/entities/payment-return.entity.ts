import { Check, Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { bigintTransformer } from './bigint.transformer.js';
import { Payment } from './payment.entity.js';

/** Money of a payment that came back: a return, a bounce, a reversal. Append-only. */
@Entity('payment_return')
@Unique('payment_return_once', ['provider', 'returnId'])
@Check('payment_return_amount_positive', 'amount > 0')
@Check('payment_return_currency_form', `currency ~ '^[A-Z]{3}$'`)
@Check('payment_return_source', `source IN ('webhook', 'settlement', 'lookup')`)
@Index('payment_return_by_payment', ['paymentId'])
export class PaymentReturn {
  @PrimaryGeneratedColumn('identity', {
    name: 'id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'payment_return_pkey',
  })
  id: string;

  @ForeignKey(() => Payment, { name: 'payment_return_payment' })
  @Column('text', { name: 'payment_id' })
  paymentId: string;

  @Column('text', { name: 'tenant_id' })
  tenantId: string;

  @Column('text', { name: 'provider' })
  provider: string;

  /** The provider's own name for the return. */
  @Column('text', { name: 'return_id' })
  returnId: string;

  /** Minor units. */
  @Column('bigint', { name: 'amount', transformer: bigintTransformer })
  amount: bigint;

  @Column('text', { name: 'currency' })
  currency: string;

  @Column('text', { name: 'source' })
  source: string;

  @Column('text', { name: 'code' })
  code: string;

  @Column('timestamptz', { name: 'at', default: () => 'clock_timestamp()' })
  at: Date;
}
