import { X509Certificate } from "node:crypto";
import type { EventLog } from "../events/log.ts";
import type { TlsFiles } from "../net/tls-files.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import { version } from "../version.ts";
import type { Metrics } from "./metrics.ts";

/** What gauges are read from. */
export interface GaugeSources {
  /** By account. */
  readonly buckets: ReadonlyMap<string, Pick<TokenBucket, "status">>;
  readonly log: Pick<EventLog, "countDeadLetters">;
  readonly isReady: () => boolean;
  /** Of the rpc listener, if it has TLS. */
  readonly tls: Pick<TlsFiles, "identity"> | undefined;
  /** Refreshes whatever others keep. */
  readonly refresh: () => void;
}

/**
 * Brings the gauges up to date, right before they are read. Series that nothing may ever happen to
 * begin at 0 here, so that their first increase is seen as one.
 */
export function createGauges(metrics: Metrics, sources: GaugeSources): () => Promise<void> {
  const { buckets, log, isReady, tls, refresh } = sources;
  metrics.buildInfo.set({ version, node_version: process.versions.node }, 1);
  for (const edge of ["rpc", "graphql"]) metrics.internalErrors.inc({ edge }, 0);
  for (const transport of ["connect", "grpc", "grpc-web", "sse", "websocket"]) {
    metrics.watchers.set({ transport }, 0);
    metrics.watchEvents.inc({ transport }, 0);
    metrics.slowConsumers.inc({ transport }, 0);
  }
  for (const outcome of ["exported", "failed", "dropped"]) metrics.traceSpans.inc({ outcome }, 0);
  for (const account of buckets.keys()) beginAtZero(metrics, account);
  if (tls) metrics.registry.registerMetric(metrics.tlsExpiry);

  return async () => {
    metrics.ready.set(isReady() ? 1 : 0);
    if (tls) {
      const { validToDate } = new X509Certificate(tls.identity.cert);
      metrics.tlsExpiry.set(validToDate.getTime() / 1_000);
    }
    refresh();
    for (const [account, bucket] of buckets) {
      const { limit, remaining } = bucket.status();
      metrics.bucketLimit.set({ account }, limit);
      metrics.bucketTokens.set({ account }, remaining);
    }
    const counted = [...buckets.keys()].map(async (account) => {
      try {
        metrics.deadLetters.set({ account }, await log.countDeadLetters(account));
      } catch {
        // The store is away: better no number than an old one.
        metrics.deadLetters.remove({ account });
      }
    });
    await Promise.all(counted);
  };
}

function beginAtZero(metrics: Metrics, account: string): void {
  for (const counter of [metrics.conflicts, metrics.unrecorded, metrics.givenUp]) {
    counter.inc({ account }, 0);
  }
  for (const what of ["event", "dead_letter"]) metrics.locked.inc({ account, what }, 0);
  metrics.bucketRejections.inc({ account }, 0);
  metrics.mixUps.inc({ account }, 0);
  metrics.credentialsRefused.set({ account }, 0);
  metrics.upstreamInFlight.set({ account }, 0);
  for (const calls of ["money", "other"]) metrics.breaker.set({ account, calls }, 0);
  for (const priority of ["money", "read"]) {
    metrics.bucketWaiting.set({ account, priority }, 0);
    metrics.bucketWaitingCallers.set({ account, priority }, 0);
    metrics.bucketRefusals.inc({ account, priority, reason: "RESOURCE_EXHAUSTED" }, 0);
  }
  for (const resource of ["payments", "payouts"]) {
    for (const verdict of ["stored", "duplicate", "bad_signature", "dead_letter", "unavailable"]) {
      metrics.callbacks.inc({ account, resource, verdict }, 0);
    }
  }
}
