import type { Logger } from "pino";
import { authTelemetry } from "./auth.ts";
import { callbacksTelemetry } from "./callbacks.ts";
import { deadLettersTelemetry } from "./dead-letters.ts";
import { durationHistograms } from "./duration-histogram.ts";
import type { StartDurations } from "./durations/durations.ts";
import { eventsTelemetry } from "./events.ts";
import { fieldFaultsTelemetry } from "./field-faults.ts";
import { graphqlTelemetry } from "./graphql.ts";
import { httpTelemetry } from "./http.ts";
import { internalErrorsTelemetry } from "./internal-errors.ts";
import { limitsTelemetry } from "./limits.ts";
import { metricExportsTelemetry } from "./metric-exports.ts";
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
 * The observers that turn what the gateway's parts report into metrics and log records, one file
 * per area. Label values are bounded: configured accounts, endpoints, methods, codes and verdicts;
 * never ids or a caller's text. Most counters of an account start at 0, so that their first
 * increase is visible.
 * @param accounts names of the merchant accounts
 */
export function createTelemetry(
  log: Logger,
  accounts: readonly string[],
  { exemplars = false, startDurations }: TelemetryOptions = {},
) {
  const registry = createRegistry();
  const histogram = durationHistograms(registry, exemplars);
  const metricExports = metricExportsTelemetry(registry, log);
  const durations = startDurations?.(metricExports);
  const internalErrorsOf = internalErrorsTelemetry(registry);
  const reportFieldFault = fieldFaultsTelemetry(registry, log);
  return {
    registry,
    process: processTelemetry(registry),
    auth: authTelemetry(log),
    tls: tlsTelemetry(registry, log),
    rpc: rpcTelemetry(registry, histogram, internalErrorsOf("rpc"), durations),
    graphql: graphqlTelemetry(registry, histogram, internalErrorsOf("graphql")),
    http: httpTelemetry(durations),
    durations,
    streams: streamsTelemetry(registry),
    limits: limitsTelemetry(registry, log),
    callbacks: callbacksTelemetry(registry, log, accounts, reportFieldFault, histogram),
    events: eventsTelemetry(registry, log, accounts),
    deadLetters: deadLettersTelemetry(registry, log, accounts),
    upstreamOf: upstreamTelemetry(
      ...([registry, log, accounts, reportFieldFault, histogram, durations] as const),
    ),
    rateLimit: rateLimitTelemetry(registry, accounts),
    reconcile: reconcileTelemetry(registry, log, accounts),
    openRedis: redisTelemetry(registry, log),
    traces: tracesTelemetry(registry, log),
  };
}

export interface TelemetryOptions {
  /** Whether histograms of durations name sampled traces as exemplars. Default: no. */
  readonly exemplars?: boolean;
  /** Starts to send durations to a collector as well. Default: none are sent. */
  readonly startDurations?: StartDurations | undefined;
}
