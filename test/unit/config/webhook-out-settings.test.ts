import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { WebhookOutEnvironment, webhookOutSettingsOf } from '../../../src/config/webhook-out-settings.js';

const settings = (env: Record<string, string>, mode: 'development' | 'production' = 'development') =>
  webhookOutSettingsOf(z.object(WebhookOutEnvironment).parse(env), mode);

describe('settings of events to clients', () => {
  it('allow port 443 and nothing of this machine when nothing is set', () => {
    expect(settings({})).toEqual({ ports: [443], allowLoopback: false, proxy: null });
  });

  it('hold further ports and the proxy', () => {
    const env = {
      PAYMENTS_WEBHOOK_OUT_PORTS: '443,8443',
      PAYMENTS_EGRESS_PROXY: 'http://egress.example.net:3128',
    };
    expect(settings(env, 'production')).toEqual({
      ports: [443, 8443],
      allowLoopback: false,
      proxy: 'http://egress.example.net:3128',
    });
  });

  it('stop the start in production when they would let clients reach this machine', () => {
    const env = { PAYMENTS_WEBHOOK_OUT_LOOPBACK: 'true' };
    expect(settings(env).allowLoopback).toBe(true);
    expect(() => settings(env, 'production')).toThrow(/PAYMENTS_WEBHOOK_OUT_LOOPBACK/);
  });

  it.each(['0', '443,', '99999', 'https', '443;80'])('refuse %j as ports', (ports) => {
    expect(() => settings({ PAYMENTS_WEBHOOK_OUT_PORTS: ports })).toThrow();
  });
});
