import { randomUUID } from 'node:crypto';
import type { CanonicalPayment } from '../../src/providers/payment-provider.js';

/** Any key of the right form; it opens nothing. */
export const FAKE_KEY = 'sk_test_standin0000000000';

/**
 * Where `npm run test:fakes` has started the stand-in. null: it is not there, and the tests are skipped
 * with one line that says so.
 */
export function standIn(name: string): string | null {
  const url = process.env[`FAKE_${name.toUpperCase().replaceAll('-', '_')}`];
  if (url !== undefined) return url;
  process.stdout.write(`NOT RUN: the stand-in ${name} is not running; \`npm run test:fakes\` starts it.\n`);
  return null;
}

export function newPayment(destination: string): CanonicalPayment {
  return {
    paymentId: `pay_${randomUUID().replaceAll('-', '')}`,
    generation: 1,
    providerKey: randomUUID(),
    amountMinor: 1_250n,
    currency: 'EUR',
    destination,
    reference: null,
    description: null,
  };
}

/** Makes an object at the stand-in without the adapter. @returns the answer's JSON. */
export async function callStandIn(
  url: string,
  path: string,
  form?: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}${path}`, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${FAKE_KEY}` },
    ...(form && { body: new URLSearchParams(form) }),
  });
  return (await response.json()) as Record<string, unknown>;
}

/** How often money moved for a PaymentIntent, by the stand-in's own list of charges. */
export async function chargesOf(url: string, paymentIntent: string | null): Promise<number> {
  const charges = await succeededCharges(url);
  return charges.filter((charge) => charge.payment_intent === paymentIntent).length;
}

/** How often money moved at the stand-in at all. */
export async function allCharges(url: string): Promise<number> {
  return (await succeededCharges(url)).length;
}

async function succeededCharges(url: string): Promise<readonly { readonly payment_intent?: unknown }[]> {
  const { data, has_more: hasMore } = await callStandIn(url, '/v1/charges?limit=100');
  if (!Array.isArray(data) || hasMore !== false)
    throw new Error('the charges of the stand-in cannot be counted');
  return (data as { readonly payment_intent?: unknown; readonly status?: unknown }[]).filter(
    ({ status }) => status === 'succeeded',
  );
}
