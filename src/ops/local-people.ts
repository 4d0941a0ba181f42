import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { signLocalToken } from '../auth/local-token.js';
import type { LocalStackFile } from './local-stack.js';
import { CommandFailure, type Terminal } from './terminal.js';

const IssuerKeyFile = z.object({
  /** No other issuer leaves its private key in a file like this one. */
  development: z.literal(true),
  issuer: z.string(),
  audience: z.string(),
  kid: z.string(),
  private_key: z.looseObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519') }),
});

/**
 * A fresh token for a person of the local stack, as if the person had just logged in with a second
 * factor.
 * @throws CommandFailure with exit code 1 in production mode, 2 when the stack has no such person or
 * no issuer of its own.
 */
export function signTokenFor(terminal: Terminal, stack: LocalStackFile, name: string): string {
  const modes = [terminal.env['PAYMENTS_MODE'], stack.environment['PAYMENTS_MODE']];
  if (modes.includes('production')) {
    throw new CommandFailure(1, 'Tokens are never signed in production mode: log in with your issuer.');
  }
  const person = Object.hasOwn(stack.people, name) ? stack.people[name] : undefined;
  if (person === undefined) {
    const known = Object.keys(stack.people).join(', ') || 'nobody';
    throw new CommandFailure(2, `The local stack has no person of this name. It has: ${known}.`);
  }
  if (!existsSync(stack.issuer_key_file)) {
    throw new CommandFailure(2, 'The local stack has no issuer of tokens. Stop it and run npm start.');
  }
  const parsed = IssuerKeyFile.safeParse(JSON.parse(readFileSync(stack.issuer_key_file, 'utf8')));
  if (!parsed.success) {
    throw new CommandFailure(2, `${stack.issuer_key_file} is not the key of a development issuer.`);
  }
  const { issuer, audience, kid, private_key: privateKey } = parsed.data;
  return signLocalToken({ issuer, audience, kid, privateKey }, person, Date.now());
}
