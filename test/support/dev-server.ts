import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { reservePortBlock, type PortReservation } from '../../src/dev/ports.js';
import { SupervisedProcess } from '../../src/dev/process/supervised-process.js';
import { openStackFolder } from '../../src/dev/stack-folder.js';
import { projectRoot, readStackSettings } from '../../src/dev/stack-settings.js';
import { resolveTemporalCli } from '../../src/dev/temporal/binary-resolver.js';
import { temporalSpec } from '../../src/dev/temporal/temporal-server.js';
import { installQuietRuntime, WorkflowRig, type RigConnections, type RigOptions } from './time-skipping.js';

interface DevServer {
  readonly address: string;
  stop(): Promise<void>;
}

/**
 * A rig on the local stack's Temporal server, for what the time-skipping one does otherwise: signals
 * during a start delay, queries of a closed run, failures of activities. Its time is real.
 */
export class DevServerRig extends WorkflowRig {
  constructor(
    private readonly server: DevServer,
    connections: RigConnections,
    options: RigOptions,
  ) {
    super(connections, options);
  }

  /** `host:port` of the server. */
  get address(): string {
    return this.server.address;
  }

  protected override async end(): Promise<void> {
    const { connection, native } = this.connections;
    await Promise.allSettled([connection.close(), native.close()]);
    await this.server.stop();
  }
}

export interface DevServerOptions extends RigOptions {
  /** Settings of the server beside the local stack's. */
  readonly dynamicConfig?: Readonly<Record<string, number>>;
}

/** Starts the server on free ports in a temporary folder, and the workers. Nothing is left by `close`. */
export async function startDevServerRig(options: DevServerOptions = {}): Promise<DevServerRig> {
  installQuietRuntime();
  const server = await startDevServer(options.dynamicConfig ?? {});
  const connection = await Connection.connect({ address: server.address });
  const native = await NativeConnection.connect({ address: server.address });
  const rig = new DevServerRig(server, { connection, native }, options);
  await rig.startWorkers();
  return rig;
}

async function startDevServer(dynamicConfig: Readonly<Record<string, number>>): Promise<DevServer> {
  const settings = readStackSettings(projectRoot());
  const temporal = {
    ...settings.temporal,
    dynamic_config: { ...settings.temporal.dynamic_config, ...dynamicConfig },
  };
  const binary = await resolveTemporalCli();
  const ports: PortReservation = await reservePortBlock(settings);
  const folder = openStackFolder(mkdtempSync(join(tmpdir(), 'payments-temporal-')));
  const port = ports.base + settings.ports.offsets.temporal;
  const { namespace } = temporal;
  const uiPort = ports.base + settings.ports.offsets.temporal_ui;
  const spec = temporalSpec({ binary, folder, port, uiPort, namespace, settings: temporal });
  const server = new SupervisedProcess(spec, { folder, restartDelaysMs: [], onEvent: () => undefined });
  // A run that is ended from outside must not leave a server behind.
  const onExit = (): void => server.killNow();
  process.once('exit', onExit);
  const stop = async (): Promise<void> => {
    process.removeListener('exit', onExit);
    await server.stop();
    rmSync(folder.path, { recursive: true, force: true });
    await ports.release();
  };
  try {
    await server.start(new AbortController().signal);
  } catch (error) {
    await stop();
    throw error;
  }
  return { address: `127.0.0.1:${port}`, stop };
}
