/**
 * The methods of every route, by the pattern of its path, for the Allow header of a 405. Fastify
 * knows routes by method first and cannot say what else a path would have answered.
 */
export class AllowedMethods {
  private readonly routes = new Map<
    string,
    { readonly segments: readonly string[]; readonly methods: Set<string> }
  >();

  /** @param pattern a path of Fastify's router: `:name` is one part, a last `*` is the rest. */
  add(pattern: string, methods: string | readonly string[]): void {
    const route = this.routes.get(pattern) ?? { segments: pattern.split('/'), methods: new Set<string>() };
    for (const method of typeof methods === 'string' ? [methods] : methods) route.methods.add(method);
    this.routes.set(pattern, route);
  }

  /**
   * @param url the request's target as it came, query included.
   * @returns the methods in alphabetic order; empty when no pattern fits the path.
   */
  of(url: string): readonly string[] {
    const query = url.indexOf('?');
    const segments = (query === -1 ? url : url.slice(0, query)).split('/');
    const methods = new Set<string>();
    for (const route of this.routes.values()) {
      if (fits(route.segments, segments)) for (const method of route.methods) methods.add(method);
    }
    return [...methods].sort();
  }
}

function fits(pattern: readonly string[], path: readonly string[]): boolean {
  const open = pattern.at(-1) === '*';
  if (open ? path.length < pattern.length : path.length !== pattern.length) return false;
  return pattern.every((part, i) => {
    if (open && i === pattern.length - 1) return true;
    return part.startsWith(':') ? path[i] !== '' : part === path[i];
  });
}
