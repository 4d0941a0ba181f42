/** What production mode looks at, as the environment says it. */
export interface ProductionValues {
  /** Every database URL that is set, by its variable. */
  readonly databaseUrls: Readonly<Record<string, string>>;
  readonly defaultProvider: string;
  readonly hasSimulator: boolean;
  readonly oidcIssuer: string | undefined;
  readonly ladderDivisor: number;
}

/** Passwords of examples and of first installations; a URL without one is for certificates and peers. */
const KNOWN_PASSWORDS = new Set([
  'password', 'passwd', 'postgres', 'postgresql', 'payments', 'secret', 'changeme', 'change-me', 'example',
  'admin', 'root', 'test', 'development', 'local',
]); // prettier-ignore

/**
 * Values that are right in development and wrong with real money.
 * @throws Error with one sentence for each of them; never a value that is a secret.
 */
export function refuseDevelopmentValues(values: ProductionValues): void {
  const refusals = [
    ...Object.entries(values.databaseUrls).flatMap(([name, url]) => [
      ...passwordRefusal(name, url),
      ...openConnectionRefusal(name, url),
    ]),
    ...(values.hasSimulator
      ? ['PAYMENTS_SIMULATOR_URL and its keys are set: the simulator pays nobody.']
      : []),
    ...(values.defaultProvider.startsWith('simulated')
      ? ['PAYMENTS_PROVIDER is the simulator, or missing: name a provider that pays.']
      : []),
    ...(values.oidcIssuer !== undefined && !values.oidcIssuer.startsWith('https:')
      ? ['PAYMENTS_OIDC_ISSUER is not https: anybody could issue its tokens.']
      : []),
    ...(values.ladderDivisor === 1
      ? []
      : ['PAYMENTS_LADDER_DIVISOR is not 1: inquiries would give up before the provider has settled.']),
  ];
  if (refusals.length > 0) throw new Error(`Production mode refuses this. ${refusals.join(' ')}`);
}

function passwordRefusal(name: string, url: string): readonly string[] {
  const { username, password } = new URL(url);
  const word = decodeURIComponent(password).toLowerCase();
  if (word === '') return [];
  const isKnown = KNOWN_PASSWORDS.has(word) || word === decodeURIComponent(username).toLowerCase();
  return isKnown ? [`The password of ${name} is one that everybody tries first.`] : [];
}

/** Hosts whose traffic leaves no machine. */
const THIS_MACHINE = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|)$/;

/** Rows hold references and names of payees: whoever listens on the way must read none, nor answer as Postgres. */
function openConnectionRefusal(name: string, url: string): readonly string[] {
  const { hostname, searchParams } = new URL(url);
  if (THIS_MACHINE.test(hostname) || searchParams.get('sslmode') === 'verify-full') return [];
  return [`${name} leads to another machine without sslmode=verify-full: anybody on the way could read it.`];
}
