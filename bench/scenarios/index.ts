import type { Scenario } from '../scenario.js';
import { audit } from './audit.scenario.js';
import { burst } from './burst.scenario.js';
import { creates } from './creates.scenario.js';
import { lane } from './lane.scenario.js';
import { memory } from './memory.scenario.js';
import { overload } from './overload.scenario.js';
import { providerAway } from './provider-away.scenario.js';
import type { ScenarioName } from './scenario-names.js';
import { settlement } from './settlement.scenario.js';
import { steady } from './steady.scenario.js';
import { unknown } from './unknown.scenario.js';
import { workerKilled } from './worker-killed.scenario.js';

const SCENARIOS: Readonly<Record<ScenarioName, Scenario>> = {
  steady,
  burst,
  'worker-killed': workerKilled,
  creates,
  overload,
  memory,
  lane,
  'provider-away': providerAway,
  unknown,
  settlement,
  audit,
};

export function scenarioOf(name: ScenarioName): Scenario {
  return SCENARIOS[name];
}
