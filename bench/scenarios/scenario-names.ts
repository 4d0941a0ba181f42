/** Every scenario, in the order of a whole run. */
export const SCENARIO_NAMES = [
  'steady',
  'burst',
  'worker-killed',
  'creates',
  'overload',
  'memory',
  'lane',
  'provider-away',
  'unknown',
  'settlement',
  'audit',
] as const;
export type ScenarioName = (typeof SCENARIO_NAMES)[number];
