import type { Route } from "./http.ts";

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Finds the route of a method and path. If there is none, returns the methods that the path allows:
 * none for an unknown path.
 */
export function createRouter(
  routes: readonly Route[],
): (method: string, path: string) => Match | { readonly allowed: readonly string[] } {
  const patterns = routes.map((route) => ({ route, pattern: patternOf(route.path) }));

  return (method, path) => {
    const found = patterns.flatMap(({ route, pattern }) => {
      const match = pattern.exec(path);
      return match ? [{ route, params: match.groups ?? {} }] : [];
    });
    return (
      found.find(({ route }) => route.method === method) ?? {
        allowed: found.map(({ route }) => route.method),
      }
    );
  };
}

function patternOf(template: string): RegExp {
  const source = template
    .replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&")
    .replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)");
  return new RegExp(`^${source}$`);
}
