import type { Environment } from "./environment.ts";
import { type Variable, variables } from "./variables.ts";

const known: ReadonlySet<string> = new Set(
  Object.entries<Variable>(variables).flatMap(([name, { inFile }]) =>
    inFile ? [name, `${name}_FILE`] : [name],
  ),
);

/** With these, variables of other programs do not begin. */
const ours =
  /^(UPSTREAM|RATE_LIMIT|RECONCILE|WATCH_TOKEN|SHUTDOWN|PAYOUT|PERSISTED|MERCHANTS|RPC_(MAX|KEEPALIVE)|REDIS_(MIN|REQUIRED)|MAX_CONNECTIONS)_/;

/**
 * OpenSSL and Node read the first one, and the commands those of `PAYMENTS_GATEWAY`. Kubernetes sets
 * the others in each container for each Service, which may be called `upstream`.
 */
const ofOthers =
  /^SSL_CERT_FILE$|^PAYMENTS_GATEWAY_|_(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP))(_|$)|_PORT$/;

/**
 * A warning for each variable that looks like the gateway's and has no effect: those that begin as
 * only its own do, and those that are almost one that is not set itself. Names no values.
 */
export function unknownVariables(env: Environment): readonly string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.has(name) && !ofOthers.test(name))
    .flatMap((name) => {
      const nearest = nearestTo(name);
      if (!ours.test(name) && (nearest === undefined || env[nearest])) return [];
      const hint = nearest === undefined ? "" : `: did you mean ${nearest}?`;
      return [`${name}: is no variable of the gateway and has no effect${hint}`];
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
