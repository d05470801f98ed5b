import type { Environment } from "./environment.ts";
import { commandVariables, type Variable, variables } from "./variables.ts";

const known: ReadonlySet<string> = new Set([
  ...Object.entries<Variable>(variables).flatMap(([name, { inFile }]) =>
    inFile ? [name, `${name}_FILE`] : [name],
  ),
  ...commandVariables,
]);

/** With these, variables of other programs do not begin. */
const ours =
  /^(PAYMENTS_GATEWAY|UPSTREAM|RATE_LIMIT|RECONCILE|WATCH_TOKEN|SHUTDOWN|PAYOUT|PERSISTED|MERCHANTS|RPC_(MAX|KEEPALIVE)|REDIS_(MIN|REQUIRED)|MAX_CONNECTIONS)_/;

/** OpenSSL and Node read it. */
const ofOpenssl = "SSL_CERT_FILE";

/** Kubernetes sets them in each container for each Service, which may be called `upstream`. */
const ofServices = /_(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP))(_|$)|_PORT$/;

/**
 * A warning for each variable that looks like the gateway's and has no effect: those that begin as
 * only its own do, and those that are almost one that is not set itself. Names no values.
 */
export function unknownVariables(env: Environment): readonly string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.has(name))
    .filter((name) => name !== ofOpenssl && !ofServices.test(name))
    .flatMap((name) => {
      const nearest = nearestTo(name);
      if (!ours.test(name) && (nearest === undefined || env[nearest])) return [];
      const hint = nearest === undefined ? "" : `: did you mean ${nearest}?`;
      return [`${name}: is no variable of the gateway and has no effect${hint}`];
    });
}

function nearestTo(name: string): string | undefined {
  let nearest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const edits = continues(name, candidate) ? 1 : editsBetween(name, candidate);
    if (edits > maxEdits(candidate) || edits >= least) continue;
    nearest = candidate;
    least = edits;
  }
  return nearest;
}

/** Such as PUBLIC_ADDRESS, or UPSTREAM_LOGIN_FILE, whose value cannot be in a file. */
function continues(name: string, candidate: string): boolean {
  return name.startsWith(candidate) && /^([A-Z]+|_FILE)$/.test(name.slice(candidate.length));
}

/** In a short name two other letters make another name; OpenTelemetry's names are much alike. */
function maxEdits(name: string): number {
  return name.length < 10 || name.startsWith("OTEL_") ? 1 : 2;
}

/** The letters to add, drop, change or swap with the next: the optimal string alignment distance. */
function editsBetween(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    // A row depends on the two before it. Most names differ from the start.
    if (rows.slice(-2).every((row) => Math.min(...row) > 2)) return Number.POSITIVE_INFINITY;
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (isSame ? 0 : 1),
          isSwapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return at(a.length, b.length);
}
