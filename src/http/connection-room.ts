import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** From so many of the most connections on, the oldest idle one makes room for a new one. */
const FULL_SHARE = 0.9;

/**
 * Keeps room for new connections: whoever holds many of them and asks nothing is cut off, oldest first,
 * before somebody else is turned away. Connections with a request in progress stay. A client that finds
 * its idle connection closed opens another, as after the keep-alive time.
 * @param most the server's own bound on connections.
 * @returns how many connections were closed to make room.
 */
export function keepRoomForConnections(server: Server, most: number): { readonly closed: () => number } {
  /** Requests in progress by connection, in the order in which they became idle or were opened. */
  const inProgress = new Map<Socket, number>();
  let closed = 0;
  server.on('connection', (socket: Socket) => {
    if (inProgress.size >= most * FULL_SHARE) closed += closeOldestIdle(inProgress);
    inProgress.set(socket, 0);
    socket.once('close', () => inProgress.delete(socket));
  });
  server.on('request', ({ socket }, response) => {
    inProgress.set(socket, (inProgress.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const before = inProgress.get(socket);
      // A connection that was closed is gone from the map and must not come back.
      if (before === undefined) return;
      inProgress.delete(socket);
      inProgress.set(socket, before - 1);
    });
  });
  return { closed: () => closed };
}

function closeOldestIdle(inProgress: Map<Socket, number>): 0 | 1 {
  for (const [socket, requests] of inProgress) {
    if (requests > 0) continue;
    inProgress.delete(socket);
    socket.destroy();
    return 1;
  }
  return 0;
}
