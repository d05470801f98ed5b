import { X509Certificate } from "node:crypto";
import type { Logger } from "pino";
import { AuthFileError, type AuthObserver } from "../auth/create-authentication.ts";
import type { CallbackObserver, Verdict } from "../callbacks/receiver.ts";
import type { CoreObserver } from "../core/context.ts";
import type { Causes } from "../events/cause-of.ts";
import type { RedisLogObserver } from "../events/redis/log.ts";
import type { LimitObserver } from "../net/observer.ts";
import type { TlsFilesOptions, TlsIdentity } from "../net/tls-files.ts";
import type { ReconcileObserver } from "../reconcile/reconciler.ts";
import type { MerchantAccount, UpstreamObserver } from "../upstream/upstream.ts";
import type { WireFault } from "../wire/wire.ts";
import { streamObserver } from "./edge-observers.ts";
import type { Metrics } from "./metrics.ts";
import { createRefusalLog } from "./refusal-log.ts";

/** What the rooms tell, as metrics and log records. */
export function upstreamObserver(
  account: MerchantAccount,
  metrics: Metrics,
  log: Logger,
  refused: Set<string>,
  causes: Causes,
): UpstreamObserver {
  return {
    onInFlight(change) {
      metrics.upstreamInFlight.inc({ account: account.name }, change);
    },
    onMoneyCall({ kind, externalId, trace }) {
      causes.sent(account.name, kind, externalId, trace);
    },
    onCall({ endpoint, outcome, durationMs }) {
      log.debug({ account: account.name, endpoint, outcome, durationMs }, "upstream");
      metrics.upstreamCalls.inc({ account: account.name, endpoint, outcome });
      metrics.upstreamSeconds.observe({ endpoint }, durationMs / 1_000);
    },
    onFieldFault({ endpoint, path, kind }) {
      countFault(metrics, kind, { endpoint, field: path });
      log.warn(
        { endpoint, field: path, fault: kind },
        "unexpected value in an answer of the payments service: field left unset",
      );
    },
    onMixUp({ endpoint }) {
      metrics.mixUps.inc({ account: account.name });
      log.error(
        { account: account.name, endpoint },
        "answer names another external_id than its request: treated as no answer. The service or a proxy mixes answers up; each request gets its own connection for 10 minutes",
      );
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
      metrics.credentialsRefused.set({ account: account.name }, accepted ? 0 : 1);
      if (!accepted)
        log.error(
          { account: account.name },
          "the payments service refuses the account's credentials: check its login and password",
        );
    },
  };
}

const breakerLevels = { closed: 0, halfOpen: 1, open: 2 } as const;

export function coreObserver(metrics: Metrics, log: Logger): CoreObserver {
  return {
    onUnrecorded({ account, externalId, error }) {
      metrics.unrecorded.inc({ account });
      log.error(
        { account, externalId, err: error },
        "answer of a payment call could not be stored as an event",
      );
    },
    onConflict({ account, externalId }) {
      log.error(
        { account, externalId },
        "one operation has two different final states: both events are kept, a success is shown",
      );
    },
    ...streamObserver(metrics),
  };
}

export function authObserver(log: Logger): AuthObserver {
  return {
    onReload(variable) {
      log.info({ variable }, "key file changed and reloaded");
    },
    onProblem(variable, error) {
      const reason = error instanceof AuthFileError ? error.message : undefined;
      log.error(
        { variable, reason, err: error },
        "cannot read the changed key file: the previous keys stay valid",
      );
    },
  };
}

/** `renew` puts new files in force. */
export function tlsObserver(
  log: Logger,
  renew: (identity: TlsIdentity) => void,
): Pick<TlsFilesOptions, "onChange" | "onProblem"> {
  return {
    onChange(identity) {
      renew(identity);
      const { validTo, fingerprint256 } = new X509Certificate(identity.cert);
      log.info({ validTo, fingerprint256 }, "TLS files changed: new connections use them");
    },
    onProblem({ variable, message }) {
      log.error(
        { variable, problem: message },
        "cannot use the changed TLS files: the previous ones stay in use",
      );
    },
  };
}

export function callbackObserver(metrics: Metrics, log: Logger): CallbackObserver {
  const refusals = createRefusalLog((told, message) => log.warn(told, message));
  return {
    onVerdict({ verdict, account = "", resource = "", conflict, error, ...told }) {
      const { durationMs, ...about } = told;
      metrics.callbacks.inc({ account, resource, verdict });
      metrics.callbackSeconds.observe({ resource, verdict }, durationMs / 1_000);
      const level = verdict === "stored" || verdict === "duplicate" ? "info" : "warn";
      const rounded = Math.round(durationMs * 1_000) / 1_000;
      const entry = { account, resource, verdict, durationMs: rounded, ...about, err: error };
      // Anybody may send these, as many as they like.
      if (unverified.has(verdict)) refusals.add(`${account} ${resource} ${verdict}`, entry);
      else log[level](entry, "callback");
      if (conflict) {
        log.error(
          { account, ...about },
          "one operation has two different final states: both events are kept, a success is shown",
        );
      }
    },
    onFieldFault({ account, resource, path, kind }) {
      countFault(metrics, kind, { endpoint: `callback ${resource}`, field: path });
      log.warn(
        { account, resource, field: path, fault: kind },
        "unexpected value in a callback: field left unset",
      );
    },
  };
}

/** Verdicts on what has shown no right signature. */
const unverified: ReadonlySet<Verdict> = new Set([
  "bad_signature",
  "too_large",
  "slow",
  "aborted",
  "not_found",
  "method_not_allowed",
  "overloaded",
]);

function countFault(
  metrics: Metrics,
  kind: WireFault["kind"],
  where: { endpoint: string; field: string },
): void {
  (kind === "malformed" ? metrics.malformedTexts : metrics.fieldFaults).inc(where);
}

/** What was sealed and could not be opened: counted each time, logged once for each account. */
export function lockedObserver(metrics: Metrics, log: Logger): RedisLogObserver["onLocked"] {
  const told = new Set<string>();
  return ({ account, what }) => {
    metrics.locked.inc({ account, what });
    const once = `${account} ${what}`;
    if (told.has(once)) return;
    told.add(once);
    log.error(
      { account, what },
      "cannot decrypt with any configured password: returned without its secrets",
    );
  };
}

export function reconcileObserver(
  metrics: Metrics,
  log: Logger,
): ReconcileObserver & { forgetOldStats(): void } {
  const statsAt = new Map<string, number>();
  return {
    forgetOldStats() {
      const now = performance.now();
      for (const [account, at] of statsAt) {
        if (at > now - statsLastMs) continue;
        statsAt.delete(account);
        metrics.openIntents.remove({ account, state: "unknown" });
        metrics.openIntents.remove({ account, state: "pending" });
        metrics.oldestUnknown.remove({ account });
      }
    },
    onSettled({ account, intent: { method, externalId, state }, by }) {
      metrics.settled.inc({ account, by });
      log.info({ account, method, externalId, was: state, by }, "settled");
    },
    onProbe({ account, lookupMethod, outcome }) {
      metrics.probes.inc({ account, rail: lookupMethod, outcome });
    },
    onGivenUp({ account, intent: { method, externalId, state, startedAtMs } }) {
      metrics.givenUp.inc({ account });
      const since = new Date(startedAtMs).toISOString();
      log.error(
        { account, method, externalId, was: state, since },
        "not settled within RECONCILE_GIVE_UP: an operator has to look it up at the payments service",
      );
    },
    onStats({ account, unknown, pending, oldestUnknownMs }) {
      statsAt.set(account, performance.now());
      metrics.openIntents.set({ account, state: "unknown" }, unknown);
      metrics.openIntents.set({ account, state: "pending" }, pending);
      const ageMs = oldestUnknownMs === undefined ? 0 : Date.now() - oldestUnknownMs;
      metrics.oldestUnknown.set({ account }, ageMs / 1_000);
    },
    onFailure({ account, error }) {
      log.warn({ account, err: error }, "reconciliation round failed; retrying");
    },
  };
}

/** After this another replica looks lost outcomes up, and tells of them. */
const statsLastMs = 60_000;

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
  for (const refusals of Object.values(refused)) refusals.inc(0);
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
