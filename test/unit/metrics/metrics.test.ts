import { describe, expect, it } from 'vitest';
import * as metrics from '../../../src/metrics/metrics.js';
import { registry } from '../../../src/metrics/instruments.js';

describe('the metrics', () => {
  it('all carry the prefix, a help text and names in snake_case', async () => {
    const all = await registry.getMetricsAsJSON();
    expect(all.length).toBeGreaterThan(25);
    for (const metric of all) {
      expect(metric.name).toMatch(/^payments_[a-z][a-z0-9_]*$/);
      expect(metric.help).toMatch(/\.$/);
    }
  });

  it('count lateness in the buckets of the promise about lateness', async () => {
    metrics.latenessSeconds.observe({}, 4);
    const text = await metrics.metricsText();
    const buckets = [...text.matchAll(/payments_lateness_seconds_bucket\{le="([^"]+)"\} (\d+)/g)];
    expect(buckets.map((b) => b[1])).toEqual(['0.1', '0.5', '1', '5', '15', '60', '300', '3600', '+Inf']);
    expect(buckets.map((b) => b[2])).toEqual(['0', '0', '0', '1', '1', '1', '1', '1', '1']);
  });

  it('count a transition under its from, to and cause', async () => {
    metrics.transitionsTotal.add({ from: 'scheduled', to: 'submitting', cause: 'begin-submission' }, 3);
    expect(await metrics.metricsText()).toContain(
      'payments_transitions_total{from="scheduled",to="submitting",cause="begin-submission"} 3',
    );
  });

  it('forget a group that is empty again', async () => {
    metrics.reviewOpen.set({ reason: 'amount_mismatch' }, 2);
    metrics.reviewOpen.reset();
    expect(await metrics.metricsText()).not.toContain('amount_mismatch');
  });
});
