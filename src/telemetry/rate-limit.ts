import { Counter, Gauge, type Registry } from "prom-client";
import type { Priority, TokenBucket, TurnTaker } from "../ratelimit/bucket.ts";
import type { BucketObserver } from "../ratelimit/observed-bucket.ts";
import { BoundGauge, BoundHistogram, byKey } from "./bound.ts";

/** Metrics of each account's rate budget: waits, refusals, and tokens left. */
export function rateLimitTelemetry(registry: Registry, accounts: readonly string[]) {
  const registers = [registry];
  const wait = new BoundHistogram({
    name: "payments_gateway_rate_limit_wait_seconds",
    help: "How long calls waited for a token of the account's rate budget, without refused calls, by kind of caller: service, customer, or gateway for its own work",
    labelNames: ["account", "priority", "caller_kind"],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5],
    registers,
  });
  const waiting = new BoundGauge({
    name: "payments_gateway_rate_limit_waiting",
    help: "Calls that wait for a token of the rate budget",
    labelNames: ["account", "priority"],
    registers,
  });
  const waitingCallers = new BoundGauge({
    name: "payments_gateway_rate_limit_waiting_callers",
    help: "Callers (API keys, subjects of JWTs, customers) that take turns at the rate budget now",
    labelNames: ["account", "priority"],
    registers,
  });
  const refusals = new Counter({
    name: "payments_gateway_rate_limit_refusals_total",
    help: "Calls that got no token, by reason: RESOURCE_EXHAUSTED when the rate budget was used up",
    labelNames: ["account", "priority", "reason"],
    registers,
  });
  const rejections = new Counter({
    name: "payments_gateway_rate_limit_upstream_rejections_total",
    help: "Calls that the payments service refused with 429 Too Many Requests",
    labelNames: ["account"],
    registers,
  });
  const tokens = new Gauge({
    name: "payments_gateway_rate_limit_remaining",
    help: "Tokens left in the account's rate budget",
    labelNames: ["account"],
    registers,
  });
  const shared = new Gauge({
    name: "payments_gateway_rate_limit_shared",
    help: "1 while the rate budget is shared through Redis, 0 while this replica uses its own share",
    labelNames: ["account"],
    registers,
  });
  const limits = new Gauge({
    name: "payments_gateway_rate_limit_limit",
    help: "Requests a second that the payments service allows the account",
    labelNames: ["account"],
    registers,
  });
  for (const account of accounts) {
    rejections.inc({ account }, 0);
    for (const priority of ["money", "read"]) {
      waiting.bind({ account, priority });
      waitingCallers.bind({ account, priority });
      refusals.inc({ account, priority, reason: "RESOURCE_EXHAUSTED" }, 0);
    }
  }
  return {
    observerOf(account: string): BucketObserver {
      const linesOf = byKey((priority: Priority) => ({
        callers: new Map<string, number>(),
        waiting: waiting.bind({ account, priority }),
        waitingCallers: waitingCallers.bind({ account, priority }),
        wait: byKey((caller_kind: string) => wait.bind({ account, priority, caller_kind })),
      }));
      return {
        onWait({ priority, caller }) {
          const line = linesOf(priority);
          const name = caller?.name ?? "";
          const count = (by: number) => {
            const calls = (line.callers.get(name) ?? 0) + by;
            if (calls > 0) line.callers.set(name, calls);
            else line.callers.delete(name);
            line.waiting.value += by;
            line.waitingCallers.value = line.callers.size;
          };
          count(1);
          return ({ waitedMs, refused: reason }) => {
            count(-1);
            if (reason === undefined) line.wait(kindOf(caller)).observe(waitedMs / 1_000);
            else refusals.inc({ account, priority, reason });
          };
        },
        onRejected() {
          rejections.inc({ account });
        },
      };
    },
    /** Sets whether an account's budget is shared through Redis at the moment. */
    onShared(account: string, isShared: boolean): void {
      shared.set({ account }, isShared ? 1 : 0);
    },
    /** @param buckets by account */
    refresh(buckets: ReadonlyMap<string, Pick<TokenBucket, "status">>): void {
      for (const [account, bucket] of buckets) {
        const { limit, remaining } = bucket.status();
        limits.set({ account }, limit);
        tokens.set({ account }, remaining);
      }
    },
  };
}

function kindOf(caller: TurnTaker | undefined): string {
  if (!caller) return "gateway";
  return caller.customer === undefined ? "service" : "customer";
}
