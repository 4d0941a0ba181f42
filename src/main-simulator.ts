import { readSimulatorSettings } from './simulator/settings.js';
import { startSimulator } from './simulator/simulator.js';

/**
 * The provider simulator's process. Prints one JSON line when both ports listen, and ends with 0
 * on SIGTERM or SIGINT. A failure is one sentence on stderr and exit code 1.
 */
try {
  const settings = readSimulatorSettings(process.env);
  const simulator = await startSimulator(settings);
  const end = (): void => {
    simulator.stop();
    process.exit(0);
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  const url = `http://${settings.host}:${simulator.port}`;
  const controlUrl = `http://${settings.host}:${simulator.controlPort}`;
  process.stdout.write(
    `${JSON.stringify({ ready: true, url, controlUrl, ledgerFile: settings.ledgerFile })}\n`,
  );
} catch (error) {
  process.stderr.write(
    `The simulator did not start. ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exit(1);
}
