import { X509Certificate } from "node:crypto";
import type { Ledger } from "../ledger/ledger.ts";
import type { TokenBucket } from "../ratelimit/queued-bucket.ts";
import type { TelemetryContext } from "./metrics.ts";

/** Where the gauges below are read. */
export interface Scraped {
  readonly notReady: () => readonly string[];
  readonly admission: { readonly inFlight: number };
  readonly tlsFiles: { readonly content: { readonly cert: string } } | undefined;
  readonly accounts: ReadonlyMap<string, { readonly bucket: TokenBucket }>;
  readonly ledger: Ledger;
  /** `since`: when the present outage began. */
  readonly redis: { readonly since?: Date; readonly replicas: number | undefined } | undefined;
}

/** Gauges of what is so now: `refresh` reads them right before they are printed. */
export function scraped({ metrics }: TelemetryContext) {
  const ready = metrics.gauge(
    "ready",
    "1 while the gateway is ready for traffic (as /readyz says), else 0",
    {},
  );
  const callsInFlight = metrics.gauge("calls_in_flight", "Calls in progress, without streams", {});
  const certificateExpiry = metrics.gauge(
    "tls_certificate_expiry_timestamp_seconds",
    "When the certificate of the rpc listener expires, in seconds since the epoch; absent without TLS",
    {},
  );
  const redisUp = metrics.gauge(
    "redis_up",
    "1 while Redis answers for every account, else 0; absent without Redis",
    {},
  );
  const redisAwaySeconds = metrics.gauge(
    "redis_away_seconds",
    "How long Redis has been unreachable; 0 while it answers; absent without Redis",
    {},
  );
  const redisReplicas = metrics.gauge(
    "redis_replicas",
    "Redis replicas in sync, in a cluster those of the primary with the fewest; absent without Redis",
    {},
  );
  for (const gauge of [certificateExpiry, redisUp, redisAwaySeconds, redisReplicas]) {
    gauge.set({}, undefined);
  }
  const tokens = metrics.gauge("rate_limit_remaining", "Tokens left in the account's rate budget", {
    account: [],
  });
  const shared = metrics.gauge(
    "rate_limit_shared",
    "1 while the rate budget is shared through Redis, 0 while this replica uses its own share",
    { account: [] },
  );
  const limits = metrics.gauge(
    "rate_limit_limit",
    "Requests a second that the payments service allows the account",
    { account: [] },
  );
  const deadLetters = metrics.gauge(
    "dead_letters",
    "Dead letters: callbacks that were not understood and wait for an operator",
    { account: [] },
  );
  const openCalls = metrics.gauge(
    "money_calls_open",
    "Calls that move money and are not settled, by state: unknown or pending",
    { account: [], state: [] },
  );
  const oldestUnknown = metrics.gauge(
    "money_calls_oldest_unknown_seconds",
    "Age of the oldest call that moves money whose outcome is unknown",
    { account: [] },
  );
  return async function refresh(of: Scraped): Promise<void> {
    ready.set({}, of.notReady().length === 0 ? 1 : 0);
    callsInFlight.set({}, of.admission.inFlight);
    if (of.tlsFiles) {
      const { validToDate } = new X509Certificate(of.tlsFiles.content.cert);
      certificateExpiry.set({}, validToDate.getTime() / 1_000);
    }
    if (of.redis) {
      const { since, replicas } = of.redis;
      redisUp.set({}, since ? 0 : 1);
      redisAwaySeconds.set({}, since ? Math.max(Date.now() - since.getTime(), 0) / 1_000 : 0);
      redisReplicas.set({}, replicas);
    }
    const counted = [...of.accounts].map(async ([account, { bucket }]) => {
      const { limit, remaining } = bucket.status();
      if (bucket.source !== "own") shared.set({ account }, bucket.source === "shared" ? 1 : 0);
      limits.set({ account }, limit);
      tokens.set({ account }, remaining);
      // Undefined: the store is unreachable.
      const [waiting, calls] = await Promise.all([
        of.ledger.letters.countDeadLetters(account).catch(() => undefined),
        of.ledger.unsettled(account).catch(() => undefined),
      ]);
      deadLetters.set({ account }, waiting);
      // Those that were given up have a counter of their own.
      const open = calls?.intents.filter(({ needsOperator }) => !needsOperator);
      const lost = open?.filter(({ state }) => state !== "pending");
      openCalls.set({ account, state: "unknown" }, lost?.length);
      openCalls.set({ account, state: "pending" }, open && lost && open.length - lost.length);
      const nowMs = Date.now();
      const ageMs = lost && nowMs - (lost[0]?.startedAtMs ?? nowMs);
      oldestUnknown.set({ account }, ageMs === undefined ? undefined : ageMs / 1_000);
    });
    await Promise.all(counted);
  };
}
