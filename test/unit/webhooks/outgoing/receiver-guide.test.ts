import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EVENT_TYPES, eventBody, eventId } from '../../../../src/webhooks/outgoing/event.js';
import { newSecret, signatureHeaders } from '../../../../src/webhooks/outgoing/event-signature.js';

const GUIDE = readFileSync(new URL('../../../../docs/webhooks.md', import.meta.url), 'utf8');

type ReadEvent = (headers: Readonly<Record<string, string>>, body: string, secret: string) => unknown;

let folder: string;
let readEvent: ReadEvent;
beforeAll(async () => {
  const [, code] = /```js\n([^]*?)```/.exec(GUIDE) ?? [];
  folder = mkdtempSync(join(tmpdir(), 'payments-receiver-'));
  const file = join(folder, 'receiver.mjs');
  writeFileSync(file, code ?? '');
  ({ readEvent } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { readEvent: ReadEvent });
});
afterAll(() => rmSync(folder, { recursive: true }));

const EVENT = {
  paymentId: 'pay_ps5rxd2c33sdjy3m5vexukzaewrunyqk',
  version: 3,
  state: 'succeeded',
  occurredAt: '2026-12-24 09:00:00.412907+00',
} as const;

describe('the guide for receivers', () => {
  const body = eventBody(EVENT);
  const signed = (secrets: readonly string[], nowMs = Date.now()) =>
    signatureHeaders({ id: eventId(EVENT), nowMs, body }, secrets);

  it('shows code that reads what we send, with either of two secrets', () => {
    const [fresh, old] = [newSecret(), newSecret()];
    expect(readEvent(signed([fresh]), body, fresh)).toEqual(JSON.parse(body));
    for (const secret of [fresh, old]) expect(readEvent(signed([fresh, old]), body, secret)).not.toBeNull();
  });

  it('shows code that refuses what is forged, changed, old or not signed', () => {
    const secret = newSecret();
    expect(readEvent(signed([newSecret()]), body, secret)).toBeNull();
    expect(readEvent(signed([secret]), body.replace('succeeded', 'failed'), secret)).toBeNull();
    expect(readEvent(signed([secret], Date.now() - 301_000), body, secret)).toBeNull();
    expect(readEvent({}, body, secret)).toBeNull();
  });

  it('names every type of event', () => {
    for (const type of EVENT_TYPES) expect(GUIDE).toContain(`\`${type}\``);
  });
});
