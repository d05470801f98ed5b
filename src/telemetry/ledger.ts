import { allKinds, kinds } from "../model/kinds.ts";
import type { Handlers } from "../report.ts";
import { loggedId } from "../secrets/mask-card-numbers.ts";
import { alike, type TelemetryContext } from "./metrics.ts";

/** Callbacks, events, dead letters, and calls that move money until their outcome is known. */
export function ledger({ metrics, log, repeated, accounts }: TelemetryContext) {
  const callbacks = metrics.counter("callbacks_total", "Callbacks received, by verdict", {
    account: accounts,
    resource: allKinds.map((kind) => kinds[kind].resource),
    verdict: ["stored", "duplicate", "bad_signature", "dead_letter", "unavailable"],
  });
  const callbackSeconds = metrics.histogram(
    "callback_duration_seconds",
    "Time from a callback's headers to its answer",
    { resource: [], verdict: [] },
  );
  const appended = metrics.counter(
    "events_appended_total",
    "Writes to the event log, by outcome: stored, duplicate, failed",
    { account: [], kind: [], source: [], outcome: [] },
  );
  const appendSeconds = metrics.histogram(
    "event_append_duration_seconds",
    "Duration of writes to the event log",
    {},
  );
  const ofAccount = alike((name, help) => metrics.counter(name, help, { account: accounts }), {
    event_conflicts_total: "Operations for which two different final states were received",
    events_unrecorded_total:
      "Answers of the payments service that could not be written to the event log",
    records_unreadable_total:
      "Reads of stored records and events that this gateway does not understand: such events are not shown, and calls of such records not looked up",
    reconciliations_given_up_total:
      "Unknown outcomes and pending payments that were given up: an operator has to look at them",
  });
  const locked = metrics.counter(
    "sealed_locked_total",
    "Reads of events and dead letters that no configured password decrypts",
    { account: accounts, what: ["event", "dead_letter"] },
  );
  const settled = metrics.counter(
    "reconciliations_settled_total",
    "Unknown outcomes and pending payments that were settled, by what settled them",
    { account: [], by: [] },
  );
  const probes = metrics.counter(
    "reconciliation_probes_total",
    "Look-ups of unknown outcomes and pending payments, by look-up method and outcome",
    { account: [], lookup_method: [], outcome: [] },
  );
  return {
    callback({ verdict, account = "", resource = "", error, ...received }) {
      const { durationMs, traceparent, ...rest } = received;
      const about = named(rest);
      callbacks.add({ account, resource, verdict });
      callbackSeconds.observe({ resource, verdict }, durationMs, traceparent);
      const level = verdict === "stored" || verdict === "duplicate" ? "info" : "warn";
      const rounded = Math.round(durationMs * 1_000) / 1_000;
      const entry = { account, resource, verdict, durationMs: rounded, ...about, err: error };
      if (unlimited.has(verdict)) log[level](entry, "callback");
      else repeated.add(`${account} ${resource} ${verdict}`, entry, "callback");
    },
    appended(write) {
      appended.add(write);
      appendSeconds.observe({}, write.durationMs);
      if (!write.conflict) return;
      ofAccount.event_conflicts_total.add(write);
      const { account, source, externalId } = write;
      log.error(
        named({ account, source, externalId }),
        "one operation has two different final states: both events are kept, a success is shown",
      );
    },
    unrecorded({ error, ...about }) {
      ofAccount.events_unrecorded_total.add(about);
      log.error(
        { ...named(about), err: error },
        "what became of a call that moves money could not be written to the event log: it is looked up until the log has it",
      );
    },
    locked(about) {
      locked.add(about);
      repeated.add(
        `${about.account} ${about.what}`,
        about,
        "cannot decrypt with any configured password: returned without its secrets",
      );
    },
    unreadable({ account, record, error }) {
      ofAccount.records_unreadable_total.add({ account });
      repeated.add(
        `${account} ${record}`,
        { account, record: loggedId(record), err: error },
        "a stored record or event cannot be read: damaged, or of a newer gateway. The event is not shown, or the calls of the record not looked up; all others go on",
      );
    },
    letterHandled: ({ operator, did, letter }) =>
      log.warn({ operator, ...letter }, `dead letter ${did}`),
    operatorAsked: (about) => log.info(named(about), "operator asked the payments service"),
    settled(about) {
      settled.add(about);
      log.info(named(about), "settled");
    },
    probed: ({ account, lookupMethod, outcome }) =>
      probes.add({ account, lookup_method: lookupMethod, outcome }),
    givenUp({ startedAtMs, ...about }) {
      ofAccount.reconciliations_given_up_total.add(about);
      const since = new Date(startedAtMs).toISOString();
      log.error(
        { ...named(about), since },
        "not settled within RECONCILE_GIVE_UP: an operator has to look it up at the payments service",
      );
    },
    reconcileFailed: ({ account, error }) =>
      repeated.add(
        `${account} reconciliation`,
        { account, err: error },
        "reconciliation round failed; retrying",
      ),
    reconcileBack({ account }) {
      repeated.end(`${account} reconciliation`);
      log.info({ account }, "reconciliation works again");
    },
  } satisfies Partial<Handlers>;
}

/** What is logged of a payment or payout, its `externalId` as logs may hold it. */
function named<About extends { readonly externalId?: string }>(about: About): About {
  const { externalId } = about;
  return externalId === undefined ? about : { ...about, externalId: loggedId(externalId) };
}

/**
 * Verdicts with a record for each callback. Anyone can cause the others, in any number; and while the
 * store is away, each callback comes again until it is back.
 */
const unlimited: ReadonlySet<string> = new Set(["stored", "duplicate", "dead_letter"]);
