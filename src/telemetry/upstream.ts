import type { Handlers } from "../report.ts";
import { alike, type TelemetryContext } from "./metrics.ts";

/** Calls to the payments service, what it says, and the accounts' rate budgets. */
export function upstream({ metrics, log, repeated, accounts }: TelemetryContext) {
  const byAccount = { account: accounts };
  const calls = metrics.counter(
    "upstream_requests_total",
    "Calls to the payments service by endpoint and outcome (HTTP status or error code)",
    { account: [], endpoint: [], outcome: [] },
  );
  const seconds = metrics.histogram(
    "upstream_request_duration_seconds",
    "Duration of calls to the payments service, without the wait for a token",
    { endpoint: [] },
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  );
  const credentialsRefused = metrics.gauge(
    "upstream_credentials_refused",
    "1 while the payments service refuses the account's own credentials, else 0",
    byAccount,
  );
  const counters = alike((name, help) => metrics.counter(name, help, byAccount), {
    upstream_mix_ups_total:
      "Answers that named another external_id than their request and were treated as no answer",
    rate_limit_upstream_rejections_total:
      "Calls that the payments service refused with 429 Too Many Requests",
  });
  const breaker = metrics.gauge(
    "upstream_breaker_state",
    "0 closed, 2 open: all calls but one at a time fail fast",
    { ...byAccount, calls: ["money", "other"] },
  );
  const fieldFaults = metrics.counter(
    "upstream_field_faults_total",
    "Fields of answers and callbacks by what was wrong: unset because of an unexpected type, unknown_shape of an object that is left out, or malformed Unicode (half of a surrogate pair), read as U+FFFD",
    { endpoint: [], field: [], kind: [] },
  );
  const unrecognized = metrics.counter(
    "upstream_unrecognized_values_total",
    "Values of answers and callbacks that the gateway does not know: kept, in `unrecognized`, and of no effect",
    { field: [] },
  );
  const wait = metrics.histogram(
    "rate_limit_wait_seconds",
    "How long calls waited for a token of the account's rate budget, without refused calls, by kind of caller: service, customer, or gateway for its own work",
    { account: [], priority: [], caller_kind: [] },
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5],
  );
  const refusals = metrics.counter(
    "rate_limit_refusals_total",
    "Calls that got no token, by reason: RESOURCE_EXHAUSTED when the rate budget was used up",
    { ...byAccount, priority: ["money", "read"], reason: ["RESOURCE_EXHAUSTED"] },
  );
  const loggedWords = new Set<string>();
  return {
    upstreamCall(call) {
      const { account, endpoint, outcome, fault, durationMs, traceparent } = call;
      log.debug({ account, endpoint, outcome, fault, durationMs }, "upstream");
      if (fault !== undefined) {
        const message = "a call to the payments service failed";
        repeated.add(`${account} ${fault}`, { account, endpoint, fault }, message);
      }
      calls.add(call);
      seconds.observe(call, durationMs, traceparent);
    },
    mixUp(about) {
      counters.upstream_mix_ups_total.add(about);
      log.error(
        about,
        "answer names another external_id than its request: treated as no answer. The service or a proxy mixes answers up; each request gets its own connection for 10 minutes",
      );
    },
    fieldFault({ account, endpoint, path: field, kind, value }) {
      const about = { account, endpoint, field };
      if (kind !== "unrecognized" || value === undefined) {
        fieldFaults.add({ endpoint, field, kind });
        // A service that has changed says so with every answer.
        repeated.add(
          `${account} ${endpoint} ${field} ${kind}`,
          { ...about, fault: kind },
          "unexpected value from the payments service: field left unset",
        );
        return;
      }
      unrecognized.add({ field });
      const word = `${field} ${value.toLowerCase()}`;
      if (loggedWords.has(word) || loggedWords.size >= maxWords) return;
      loggedWords.add(word);
      log.warn(
        { ...about, value },
        "the payments service sent a value that the gateway does not know: it is kept in `unrecognized` and changes no state. Logged once per value; metrics count it",
      );
    },
    credentials({ account, accepted }) {
      credentialsRefused.set({ account }, accepted ? 0 : 1);
      if (accepted) return;
      log.error(
        { account },
        "the payments service refuses the account's credentials: check its login and password",
      );
    },
    breaker({ account, calls, state }) {
      const isOpen = state === "open";
      breaker.set({ account, calls }, isOpen ? 2 : 0);
      const about = { account, calls, state };
      if (!isOpen) log.info(about, "the payments service answers again");
      else
        log.warn(
          about,
          "the payments service keeps failing: all calls but one at a time fail fast",
        );
    },
    tokenGiven(given) {
      const { account, priority, caller, waitedMs, refused: reason } = given;
      if (reason !== undefined) return refusals.add({ account, priority, reason });
      const customer = caller?.customer === undefined ? "service" : "customer";
      wait.observe({ account, priority, caller_kind: caller ? customer : "gateway" }, waitedMs);
    },
    tokenRejected: (about) => counters.rate_limit_upstream_rejections_total.add(about),
    budgetSource(about) {
      if (about.source === "shared") log.info(about, "rate budget shared through Redis again");
      else {
        log.warn(
          about,
          "rate budget without Redis: this replica uses its share of the limit; retrying",
        );
      }
    },
  } satisfies Partial<Handlers>;
}

/** Most words that are logged, so that their record stays small; more are counted alone. */
const maxWords = 1_000;
