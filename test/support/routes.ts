import type { NestFastifyApplication } from '@nestjs/platform-fastify';

/** A route as the router knows it. */
export interface Route {
  readonly method: string;
  /** With `:name` for its parameters. */
  readonly url: string;
}

const BRANCH = /^(?<indent>[│ ]*)[├└]── (?<part>\S+) \((?<methods>[A-Z, ]+)\)$/;
const INDENT = 4;

/**
 * Every route of a built application, read from its router and not from what its controllers say, so
 * that a route from anywhere is found. HEAD stands beside its GET and is left out.
 * @throws Error for a line of the router's picture that is not understood.
 */
export function routesOf(app: NestFastifyApplication): readonly Route[] {
  const picture = app.getHttpAdapter().getInstance().printRoutes({ commonPrefix: false });
  const path: string[] = [];
  const routes: Route[] = [];
  for (const line of picture.split('\n').filter((text) => text !== '')) {
    const { indent = '', part = '', methods = '' } = BRANCH.exec(line)?.groups ?? {};
    if (part === '') throw new Error(`The router's line is not understood: ${line}`);
    const depth = indent.length / INDENT;
    path.splice(depth, path.length, part);
    const url = path.join('');
    for (const method of methods.split(', ')) if (method !== 'HEAD') routes.push({ method, url });
  }
  return routes;
}

/** `GET /v1/payments/:id`. */
export function nameOf({ method, url }: Route): string {
  return `${method} ${url}`;
}
