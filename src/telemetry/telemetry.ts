import type { Logger } from "pino";
import { authTelemetry } from "./auth.ts";
import { callbacksTelemetry } from "./callbacks.ts";
import { deadLettersTelemetry } from "./dead-letters.ts";
import { eventsTelemetry } from "./events.ts";
import { fieldFaultsTelemetry } from "./field-faults.ts";
import { graphqlTelemetry } from "./graphql.ts";
import { internalErrorsTelemetry } from "./internal-errors.ts";
import { limitsTelemetry } from "./limits.ts";
import { processTelemetry } from "./process.ts";
import { rateLimitTelemetry } from "./rate-limit.ts";
import { reconcileTelemetry } from "./reconcile.ts";
import { redisTelemetry } from "./redis.ts";
import { createRegistry } from "./registry.ts";
import { rpcTelemetry } from "./rpc.ts";
import { streamsTelemetry } from "./streams.ts";
import { tlsTelemetry } from "./tls.ts";
import { tracesTelemetry } from "./traces.ts";
import { upstreamTelemetry } from "./upstream.ts";

export type Telemetry = ReturnType<typeof createTelemetry>;

/**
 * What the rooms' observers count and log, an area a file: its metrics, their zeros and what moves
 * them. Labels are bounded: accounts of the configuration, endpoints, methods, codes and verdicts; never
 * ids, and no text of a caller. What may happen to an account is 0 from the start, so that its first
 * increase is seen as one.
 * @param accounts their names
 */
export function createTelemetry(log: Logger, accounts: readonly string[]) {
  const registry = createRegistry();
  const internalErrorsOf = internalErrorsTelemetry(registry);
  const countFieldFault = fieldFaultsTelemetry(registry);
  return {
    registry,
    process: processTelemetry(registry),
    auth: authTelemetry(log),
    tls: tlsTelemetry(registry, log),
    rpc: rpcTelemetry(registry, internalErrorsOf("rpc")),
    graphql: graphqlTelemetry(registry, internalErrorsOf("graphql")),
    streams: streamsTelemetry(registry),
    limits: limitsTelemetry(registry, log),
    callbacks: callbacksTelemetry(registry, log, accounts, countFieldFault),
    events: eventsTelemetry(registry, log, accounts),
    deadLetters: deadLettersTelemetry(registry, log, accounts),
    upstreamOf: upstreamTelemetry(registry, log, accounts, countFieldFault),
    rateLimit: rateLimitTelemetry(registry, accounts),
    reconcile: reconcileTelemetry(registry, log, accounts),
    openRedis: redisTelemetry(registry, log),
    traces: tracesTelemetry(registry, log),
  };
}
