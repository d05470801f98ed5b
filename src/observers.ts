import type { Logger } from "pino";
import type { Metrics } from "./admin/metrics.ts";
import type { AuthObserver } from "./auth/create-authentication.ts";
import type { CallbackObserver } from "./callbacks/receiver.ts";
import type { CoreObserver } from "./core/context.ts";
import type { LimitObserver } from "./limits/observer.ts";
import type { ReconcileObserver } from "./reconcile/reconciler.ts";
import type { MerchantAccount, UpstreamObserver } from "./upstream/upstream.ts";

/** What the rooms tell, as metrics and log records. */
export function upstreamObserver(
  account: MerchantAccount,
  metrics: Metrics,
  log: Logger,
  refused: Set<string>,
): UpstreamObserver {
  return {
    onCall({ endpoint, outcome, durationMs }) {
      metrics.upstreamCalls.inc({ account: account.name, endpoint, outcome });
      metrics.upstreamSeconds.observe({ endpoint }, durationMs / 1_000);
    },
    onFieldFault({ endpoint, path }) {
      metrics.fieldFaults.inc({ endpoint, field: path });
      log.warn({ endpoint, field: path }, "a field of an answer had an unexpected type");
    },
    onBreaker({ calls, state }) {
      metrics.breaker.set({ account: account.name, calls }, breakerLevels[state]);
      const level = state === "open" ? "warn" : state === "closed" ? "info" : "debug";
      log[level]({ account: account.name, calls, state }, "upstream breaker");
    },
    onReadFailed({ endpoint, next }) {
      metrics.readFailures.inc({ account: account.name, endpoint, next });
    },
    onCredentials(accepted) {
      if (accepted) refused.delete(account.name);
      else refused.add(account.name);
      if (!accepted) log.error({ account: account.name }, "the upstream refuses our credentials");
    },
  };
}

const breakerLevels = { closed: 0, halfOpen: 1, open: 2 } as const;

export function coreObserver(metrics: Metrics, log: Logger): CoreObserver {
  return {
    onUnrecorded({ account, externalId, error }) {
      metrics.unrecorded.inc({ account });
      log.error({ account, externalId, err: error }, "an answer could not be recorded");
    },
    onConflict({ account, externalId }) {
      metrics.conflicts.inc({ account });
      log.error({ account, externalId }, "an operation has two different final states");
    },
  };
}

export function authObserver(log: Logger): AuthObserver {
  return {
    onReload(variable) {
      log.info({ variable }, "a file of keys has changed and was read again");
    },
    onProblem(variable, error) {
      log.error(
        { variable, err: error },
        "keys could not be read: those known before stay in force",
      );
    },
  };
}

export function callbackObserver(metrics: Metrics, log: Logger): CallbackObserver {
  return {
    onVerdict({ verdict, account = "", resource = "payments", conflict, error, ...about }) {
      metrics.callbacks.inc({ account, resource, verdict });
      const level = verdict === "stored" || verdict === "duplicate" ? "info" : "warn";
      log[level]({ account, resource, verdict, ...about, err: error }, "callback");
      if (conflict) {
        metrics.conflicts.inc({ account });
        log.error({ account, ...about }, "an operation has two different final states");
      }
    },
    onFieldFault({ account, resource, path }) {
      metrics.fieldFaults.inc({ endpoint: `callback ${resource}`, field: path });
      log.warn({ account, resource, field: path }, "a field of a callback had an unexpected type");
    },
  };
}

export function reconcileObserver(metrics: Metrics, log: Logger): ReconcileObserver {
  return {
    onSettled({ account, intent: { method, externalId, state }, by }) {
      metrics.settled.inc({ account, by });
      log.info({ account, method, externalId, was: state, by }, "settled");
    },
    onProbe({ account, rail, outcome }) {
      metrics.probes.inc({ account, rail, outcome });
    },
    onGivenUp({ account, intent: { method, externalId, state, startedAtMs } }) {
      metrics.givenUp.inc({ account });
      const since = new Date(startedAtMs).toISOString();
      log.error(
        { account, method, externalId, was: state, since },
        "not settled in time: look at the payments service, by hand",
      );
    },
    onStats({ account, unknown, pending, oldestUnknownMs }) {
      metrics.openIntents.set({ account, state: "unknown" }, unknown);
      metrics.openIntents.set({ account, state: "pending" }, pending);
      const ageMs = oldestUnknownMs === undefined ? 0 : Date.now() - oldestUnknownMs;
      metrics.oldestUnknown.set({ account }, ageMs / 1_000);
    },
    onFailure({ account, error }) {
      log.warn({ account, err: error }, "looking lost outcomes up failed; it goes on");
    },
  };
}

export function limitObserver(
  listener: "public" | "rpc" | "admin",
  metrics: Metrics,
  log: Logger,
): LimitObserver {
  // Whoever floods a listener must not flood the log as well.
  let quietUntilMs = 0;
  const warn = (about: object, message: string) => {
    const now = Date.now();
    if (now < quietUntilMs) return;
    quietUntilMs = now + 10_000;
    log.warn({ listener, ...about }, message);
  };
  // Refusing must cost next to nothing.
  const refused = {
    money: metrics.callsRefused.labels(listener, "money"),
    other: metrics.callsRefused.labels(listener, "other"),
    unknown: metrics.callsRefused.labels(listener, "unknown"),
  };
  return {
    onCut(limit) {
      metrics.connectionsCut.inc({ listener, limit });
      warn({ limit }, "a limit cut a connection; more are counted, not logged");
    },
    onRefused(kind) {
      if (kind !== "exempt") refused[kind].inc();
      warn({ kind }, "overload: calls are refused; more are counted, not logged");
    },
  };
}
