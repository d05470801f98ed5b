import type { Handlers } from "../report.ts";
import type { TelemetryContext } from "./metrics.ts";

/** Each account's rate budget: waits, refusals, and tokens left. */
export function budget({ metrics, log, accounts }: TelemetryContext) {
  const lines = { account: accounts, priority: ["money", "read"] };
  const wait = metrics.histogram(
    "rate_limit_wait_seconds",
    "How long calls waited for a token of the account's rate budget, without refused calls, by kind of caller: service, customer, or gateway for its own work",
    { account: [], priority: [], caller_kind: [] },
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5],
  );
  const waiting = metrics.gauge(
    "rate_limit_waiting",
    "Calls that wait for a token of the rate budget",
    lines,
  );
  const refusals = metrics.counter(
    "rate_limit_refusals_total",
    "Calls that got no token, by reason: RESOURCE_EXHAUSTED when the rate budget was used up",
    { ...lines, reason: ["RESOURCE_EXHAUSTED"] },
  );
  const rejections = metrics.counter(
    "rate_limit_upstream_rejections_total",
    "Calls that the payments service refused with 429 Too Many Requests",
    { account: accounts },
  );
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
  return {
    tokenAsked: (asked) => waiting.add(asked),
    tokenGiven(given) {
      const { account, priority, caller, waitedMs, refused: reason } = given;
      waiting.add(given, -1);
      if (reason !== undefined) return refusals.add({ account, priority, reason });
      const customer = caller?.customer === undefined ? "service" : "customer";
      wait.observe({ account, priority, caller_kind: caller ? customer : "gateway" }, waitedMs);
    },
    tokenRejected: (about) => rejections.add(about),
    budgetSource(about) {
      if (about.source === "shared") log.info(about, "rate budget shared through Redis again");
      else {
        log.warn(
          about,
          "rate budget without Redis: this replica uses its share of the limit; retrying",
        );
      }
    },
    budget({ account, source, limit, remaining }) {
      if (source !== "own") shared.set({ account }, source === "shared" ? 1 : 0);
      limits.set({ account }, limit);
      tokens.set({ account }, remaining);
    },
  } satisfies Partial<Handlers>;
}
