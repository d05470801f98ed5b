import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import type { SettledCall } from "../ledger/intents.ts";
import type { ReconcileObserver } from "../reconcile/reconciler.ts";

export interface ReconcileTelemetry extends ReconcileObserver {
  /** A call's outcome became known without its own answer. */
  onSettled(settled: SettledCall): void;
  /** Removes the gauges of accounts that another replica reconciles by now. */
  refresh(): void;
}

/** Metrics and logs of the reconciler: unknown outcomes and pending payments. */
export function reconcileTelemetry(
  registry: Registry,
  log: Logger,
  accounts: readonly string[],
): ReconcileTelemetry {
  const registers = [registry];
  const open = new Gauge({
    name: "payments_gateway_money_calls_open",
    help: "Calls that move money and are not settled, by state: unknown or pending",
    labelNames: ["account", "state"],
    registers,
  });
  const oldestUnknown = new Gauge({
    name: "payments_gateway_money_calls_oldest_unknown_seconds",
    help: "Age of the oldest call that moves money whose outcome is unknown",
    labelNames: ["account"],
    registers,
  });
  const settled = new Counter({
    name: "payments_gateway_reconciliations_settled_total",
    help: "Unknown outcomes and pending payments that were settled, by what settled them",
    labelNames: ["account", "by"],
    registers,
  });
  const probes = new Counter({
    name: "payments_gateway_reconciliation_probes_total",
    help: "Look-ups of unknown outcomes and pending payments, by look-up method and outcome",
    labelNames: ["account", "lookup_method", "outcome"],
    registers,
  });
  const givenUp = new Counter({
    name: "payments_gateway_reconciliations_given_up_total",
    help: "Unknown outcomes and pending payments that were given up: an operator has to look at them",
    labelNames: ["account"],
    registers,
  });
  for (const account of accounts) givenUp.inc({ account }, 0);
  const statsAt = new Map<string, number>();
  return {
    refresh() {
      const now = performance.now();
      for (const [account, at] of statsAt) {
        if (at > now - statsLastMs) continue;
        statsAt.delete(account);
        open.remove({ account, state: "unknown" });
        open.remove({ account, state: "pending" });
        oldestUnknown.remove({ account });
      }
    },
    onSettled({ account, intent: { method, externalId, state }, by }) {
      settled.inc({ account, by });
      log.info({ account, method, externalId, was: state, by }, "settled");
    },
    onProbe({ account, lookupMethod, outcome }) {
      probes.inc({ account, lookup_method: lookupMethod, outcome });
    },
    onGivenUp({ account, intent: { method, externalId, state, startedAtMs } }) {
      givenUp.inc({ account });
      const since = new Date(startedAtMs).toISOString();
      log.error(
        { account, method, externalId, was: state, since },
        "not settled within RECONCILE_GIVE_UP: an operator has to look it up at the payments service",
      );
    },
    onStats({ account, unknown, pending, oldestUnknownMs }) {
      statsAt.set(account, performance.now());
      open.set({ account, state: "unknown" }, unknown);
      open.set({ account, state: "pending" }, pending);
      const ageMs = oldestUnknownMs === undefined ? 0 : Date.now() - oldestUnknownMs;
      oldestUnknown.set({ account }, ageMs / 1_000);
    },
    onFailure({ account, error }) {
      log.warn({ account, err: error }, "reconciliation round failed; retrying");
    },
  };
}

/** Without new stats for this long, another replica reconciles the account and reports them. */
const statsLastMs = 60_000;
