/**
 * simulated: `Simulated-Signature`, in the form of Stripe's header. stripe: `Stripe-Signature`.
 * standard: the Standard Webhooks headers.
 */
export type SignatureScheme = 'simulated' | 'stripe' | 'standard';

/** Where an account's events go. */
export interface WebhookEndpoint {
  readonly account: string;
  readonly url: string;
  /** Every one of them signs each event, so that a receiver can change its secret. */
  readonly secrets: readonly string[];
  readonly scheme: SignatureScheme;
}

/** As many as sign at once. */
const MOST_SECRETS = 3;

/**
 * Reads `{ account, url, secret | secrets, scheme }`; the scheme is `simulated` unless given.
 * @returns the endpoint, or one sentence that says what is wrong; never a secret.
 */
export function readEndpoint(
  given: Readonly<Record<string, unknown>>,
): { readonly endpoint: WebhookEndpoint } | { readonly wrong: string } {
  const { account, url, scheme = 'simulated', secret, secrets = [secret], ...unknown } = given;
  const [name] = Object.keys(unknown);
  if (name !== undefined) return { wrong: `"${name}" is no part of a webhook endpoint.` };
  if (typeof account !== 'string' || !/^acct_\w{1,64}$/.test(account)) {
    return { wrong: 'An endpoint needs the account whose events it gets.' };
  }
  if (typeof url !== 'string' || !/^https?:\/\//.test(url) || !URL.canParse(url)) {
    return { wrong: 'An endpoint needs a url of http or https.' };
  }
  if (scheme !== 'simulated' && scheme !== 'stripe' && scheme !== 'standard') {
    return { wrong: 'The scheme of an endpoint is "simulated", "stripe" or "standard".' };
  }
  if (!Array.isArray(secrets) || secrets.length < 1 || secrets.length > MOST_SECRETS) {
    return { wrong: `An endpoint needs 1 to ${MOST_SECRETS} secrets.` };
  }
  if (!secrets.every((entry): entry is string => isSecret(entry, scheme))) {
    return {
      wrong:
        scheme === 'standard'
          ? 'A secret of the standard scheme is "whsec_" and base64 of 24 to 64 bytes.'
          : 'A secret of this scheme is a text of at least 8 characters.',
    };
  }
  return { endpoint: { account, url, secrets, scheme } };
}

function isSecret(secret: unknown, scheme: SignatureScheme): boolean {
  if (typeof secret !== 'string' || secret.length < 8) return false;
  if (scheme !== 'standard') return true;
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  if (encoded === undefined) return false;
  const { length } = Buffer.from(encoded, 'base64');
  return length >= 24 && length <= 64;
}
