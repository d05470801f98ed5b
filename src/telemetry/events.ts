import type { Logger } from "pino";
import { Counter, Histogram, type Registry } from "prom-client";
import type { CoreObserver } from "../core/context.ts";
import type { AppendObserver } from "../ledger/observed-log.ts";
import type { OnLocked } from "../ledger/redis.ts";
import { latencyBuckets } from "./registry.ts";

type Locked = Parameters<OnLocked>[0];

/** Metrics and logs of event log writes, and of sealed values that cannot be decrypted. */
export interface EventsTelemetry
  extends AppendObserver,
    Pick<CoreObserver, "onUnrecorded" | "onConflict"> {
  /**
   * A sealed event or dead letter could not be decrypted. Counted each time; logged once per
   * account for events and once for dead letters.
   */
  onLocked(locked: Locked): void;
}

export function eventsTelemetry(
  registry: Registry,
  log: Logger,
  accounts: readonly string[],
): EventsTelemetry {
  const registers = [registry];
  const appended = new Counter({
    name: "payments_gateway_events_appended_total",
    help: "Writes to the event log, by outcome: stored, duplicate, failed",
    labelNames: ["account", "kind", "source", "outcome"],
    registers,
  });
  const seconds = new Histogram({
    name: "payments_gateway_event_append_duration_seconds",
    help: "Duration of writes to the event log",
    buckets: latencyBuckets,
    registers,
  });
  const conflicts = new Counter({
    name: "payments_gateway_event_conflicts_total",
    help: "Operations for which two different final states were received",
    labelNames: ["account"],
    registers,
  });
  const unrecorded = new Counter({
    name: "payments_gateway_events_unrecorded_total",
    help: "Answers of the payments service that could not be written to the event log",
    labelNames: ["account"],
    registers,
  });
  const locked = new Counter({
    name: "payments_gateway_sealed_locked_total",
    help: "Reads of events and dead letters that no configured password decrypts",
    labelNames: ["account", "what"],
    registers,
  });
  for (const account of accounts) {
    conflicts.inc({ account }, 0);
    unrecorded.inc({ account }, 0);
    for (const what of ["event", "dead_letter"]) locked.inc({ account, what }, 0);
  }
  const logged = new Set<string>();
  return {
    onAppend({ account, kind, source, outcome, conflict, durationMs }) {
      appended.inc({ account, kind, source, outcome });
      seconds.observe(durationMs / 1_000);
      if (conflict) conflicts.inc({ account });
    },
    onUnrecorded({ account, externalId, error }) {
      unrecorded.inc({ account });
      log.error(
        { account, externalId, err: error },
        "what became of a call that moves money could not be written to the event log: it is looked up until the log has it",
      );
    },
    onConflict({ account, externalId }) {
      log.error({ account, externalId }, conflictMessage);
    },
    onLocked({ account, what }) {
      locked.inc({ account, what });
      const once = `${account} ${what}`;
      if (logged.has(once)) return;
      logged.add(once);
      log.error(
        { account, what },
        "cannot decrypt with any configured password: returned without its secrets",
      );
    },
  };
}

export const conflictMessage =
  "one operation has two different final states: both events are kept, a success is shown";
