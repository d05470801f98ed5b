import { X509Certificate } from "node:crypto";
import type { Ledger } from "../ledger/ledger.ts";
import type { Account } from "../upstream/upstream.ts";
import { alike, type TelemetryContext } from "./metrics.ts";

/** Where the gauges below are read. */
export interface Scraped {
  readonly notReady: () => readonly string[];
  readonly admission: { readonly inFlight: number };
  readonly tlsFiles: { readonly content: { readonly cert: string } } | undefined;
  readonly accounts: ReadonlyMap<string, Account>;
  readonly ledger: Ledger;
  /** `since`: when the present outage began. */
  readonly redis: { readonly since?: Date; readonly replicas: number | undefined } | undefined;
}

/** Gauges of what is so now: `refresh` reads them right before they are printed. */
export function scraped({ metrics }: TelemetryContext) {
  const ofProcess = alike((name, help) => metrics.gauge(name, help, {}), {
    ready: "1 while the gateway is ready for traffic (as /readyz says), else 0",
    calls_in_flight: "Calls in progress, without streams",
    tls_certificate_expiry_timestamp_seconds:
      "When the certificate of the rpc listener expires, in seconds since the epoch; absent without TLS",
    redis_up: "1 while Redis answers for every account, else 0; absent without Redis",
    redis_away_seconds:
      "How long Redis has been unreachable; 0 while it answers; absent without Redis",
    redis_replicas:
      "Redis replicas in sync, in a cluster those of the primary with the fewest; absent without Redis",
  });
  const ofAccount = alike((name, help) => metrics.gauge(name, help, { account: [] }), {
    upstream_requests_in_flight:
      "Calls to the payments service that were sent and have no answer yet",
    rate_limit_remaining: "Tokens left in the account's rate budget",
    rate_limit_shared:
      "1 while the rate budget is shared through Redis, 0 while this replica uses its own share",
    rate_limit_limit: "Requests a second that the payments service allows the account",
    dead_letters: "Dead letters: callbacks that were not understood and wait for an operator",
    money_calls_oldest_unknown_seconds:
      "Age of the oldest call that moves money whose outcome is unknown",
  });
  const waiting = metrics.gauge(
    "rate_limit_waiting",
    "Calls that wait for a token of the rate budget",
    { account: [], priority: [] },
  );
  const openCalls = metrics.gauge(
    "money_calls_open",
    "Calls that move money and are not settled, by state: unknown or pending",
    { account: [], state: [] },
  );
  return async function refresh(of: Scraped): Promise<void> {
    const { redis, tlsFiles } = of;
    const expiry = tlsFiles && new X509Certificate(tlsFiles.content.cert).validToDate;
    ofProcess.ready.set({}, of.notReady().length === 0 ? 1 : 0);
    ofProcess.calls_in_flight.set({}, of.admission.inFlight);
    ofProcess.tls_certificate_expiry_timestamp_seconds.set({}, expiry && expiry.getTime() / 1_000);
    ofProcess.redis_up.set({}, redis && (redis.since ? 0 : 1));
    ofProcess.redis_away_seconds.set({}, redis && ageOf(redis.since?.getTime()));
    ofProcess.redis_replicas.set({}, redis?.replicas);
    const counted = [...of.accounts].map(async ([account, { bucket, upstream }]) => {
      ofAccount.upstream_requests_in_flight.set({ account }, upstream.inFlight);
      const { money, read } = bucket.waiting;
      waiting.set({ account, priority: "money" }, money);
      waiting.set({ account, priority: "read" }, read);
      const { limit, remaining } = bucket.status();
      const shared = bucket.source === "own" ? undefined : bucket.source === "shared" ? 1 : 0;
      ofAccount.rate_limit_shared.set({ account }, shared);
      ofAccount.rate_limit_limit.set({ account }, limit);
      ofAccount.rate_limit_remaining.set({ account }, remaining);
      // Undefined: the store is unreachable.
      const [letters, calls] = await Promise.all([
        of.ledger.letters.countDeadLetters(account).catch(() => undefined),
        of.ledger.unsettled(account).catch(() => undefined),
      ]);
      ofAccount.dead_letters.set({ account }, letters);
      // Those that were given up have a counter of their own.
      const open = calls?.filter(({ needsOperator }) => !needsOperator);
      const lost = open?.filter(({ state }) => state !== "pending");
      openCalls.set({ account, state: "unknown" }, lost?.length);
      openCalls.set({ account, state: "pending" }, open && lost && open.length - lost.length);
      const ageSeconds = lost && ageOf(lost[0]?.startedAtMs);
      ofAccount.money_calls_oldest_unknown_seconds.set({ account }, ageSeconds);
    });
    await Promise.all(counted);
  };
}

/** Seconds since a time in milliseconds; 0 if there is none. */
function ageOf(sinceMs: number | undefined): number {
  return sinceMs === undefined ? 0 : Math.max(Date.now() - sinceMs, 0) / 1_000;
}
