import type { Environment } from "./environment.ts";
import { type Variable, variables } from "./variables.ts";

const known: ReadonlySet<string> = new Set(
  Object.entries<Variable>(variables).flatMap(([name, { inFile }]) =>
    inFile ? [name, `${name}_FILE`] : [name],
  ),
);

/** OpenSSL and Node read it. */
const ofOpenssl = "SSL_CERT_FILE";

/**
 * A warning for each variable that is almost one of the gateway's which is not set itself: it has no
 * effect. Names no values.
 */
export function unknownVariables(env: Environment): readonly string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.has(name) && name !== ofOpenssl)
    .flatMap((name) => {
      const nearest = nearestTo(name);
      if (nearest === undefined || env[nearest]) return [];
      return [`${name}: is no variable of the gateway and has no effect: did you mean ${nearest}?`];
    });
}

/** In a short name two other letters make another name; OpenTelemetry's names are much alike. */
function nearestTo(name: string): string | undefined {
  return [...known].find((candidate) =>
    isWithin(name, candidate, candidate.length < 10 || candidate.startsWith("OTEL_") ? 1 : 2),
  );
}

/** Whether at most so many letters have to be added, dropped or changed. */
function isWithin(a: string, b: string, edits: number): boolean {
  if (a === b) return true;
  if (edits === 0 || Math.abs(a.length - b.length) > edits) return false;
  let at = 0;
  while (a[at] === b[at]) at++;
  // What follows the first letter that differs, with as many letters left out as an edit takes.
  const follows = (ofA: number, ofB: number) =>
    isWithin(a.slice(at + ofA), b.slice(at + ofB), edits - 1);
  return follows(1, 1) || follows(1, 0) || follows(0, 1);
}
