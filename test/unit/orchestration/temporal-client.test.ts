import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createOrchestration } from '../../../src/orchestration/temporal-client.js';
import { OrchestratorUnavailable } from '../../../src/outbox/workflow-starter.js';

/** A port of this machine that nobody listens on. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('the client side of Temporal', () => {
  it('is made without a server; a call says that none is there, and it closes', async () => {
    const address = `127.0.0.1:${await closedPort()}`;
    const orchestration = createOrchestration({ address, namespace: 'default', tls: null });
    await expect(orchestration.starter.wakeExisting('pay_1')).rejects.toBeInstanceOf(OrchestratorUnavailable);
    await orchestration.close();
  });
});
