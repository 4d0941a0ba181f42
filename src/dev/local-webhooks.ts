import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { StackError } from './stack-error.js';
import { readJsonFile, writePrivately, type StackFolder } from './stack-folder.js';

/** A profile of the simulator as the product registers it (names: src/providers/simulated). */
interface LocalSender {
  readonly provider: string;
  /** The product's name for the account: its credential shows it no other. */
  readonly account: string;
  /** The simulator's name for the same account. */
  readonly simulatorAccount: string;
}

const SENDERS: readonly LocalSender[] = ['a', 'b', 'c', 'd', 't'].map((profile) => ({
  provider: profile === 'a' ? 'simulated' : `simulated_${profile}`,
  account: 'default',
  simulatorAccount: `acct_${profile}`,
}));

const keyOf = ({ provider, account }: LocalSender): string => `${provider}/${account}`;

/**
 * Writes a signing secret for each account on the first start, in the form that the API reads
 * (PAYMENTS_WEBHOOK_SECRETS_FILE). Later starts keep them: events of the last run may still come.
 */
export function ensureWebhookSecrets(folder: StackFolder): void {
  if (existsSync(folder.webhookSecretsFile)) return;
  const secret = (): string => `whsec_${randomBytes(32).toString('base64')}`;
  writePrivately(
    folder.webhookSecretsFile,
    Object.fromEntries(SENDERS.map((sender) => [keyOf(sender), [secret()]])),
  );
}

/**
 * Where the simulator sends the events of each account, and what it signs them with: the text of
 * SIMULATOR_WEBHOOKS.
 * @throws StackError when the file of secrets is missing or lacks an account.
 */
export function webhookEndpoints(folder: StackFolder, apiPort: number): string {
  const secrets = (readJsonFile(folder.webhookSecretsFile) ?? {}) as Readonly<Record<string, unknown>>;
  return JSON.stringify(
    SENDERS.map((sender) => {
      const own = secrets[keyOf(sender)];
      if (!Array.isArray(own)) {
        throw new StackError(
          `${folder.webhookSecretsFile} lacks ${keyOf(sender)}. Remove the file and start again.`,
        );
      }
      return {
        account: sender.simulatorAccount,
        url: `http://127.0.0.1:${apiPort}/v1/webhooks/${sender.provider}`,
        secrets: own as readonly unknown[],
        scheme: 'simulated',
      };
    }),
  );
}
