import { type Event, EventSource } from "../gen/payments/v1/event_pb.ts";
import { kindOf, kinds } from "../model/kinds.ts";
import { noReport, type Observations } from "../report.ts";
import { activeSpan, noTracing } from "../telemetry/tracing/tracing.ts";
import type { AccountOptions } from "./account.ts";
import type { Appended, Entry } from "./log.ts";

/** Traces and reports what an entry becomes; without an entry there is nothing to tell. */
export async function observed<R extends Appended | undefined>(
  { report = noReport, tracing = noTracing }: Pick<AccountOptions, "report" | "tracing">,
  account: string,
  entry: Entry | undefined,
  write: () => Promise<R>,
): Promise<R> {
  if (!entry) return write();
  const startedMs = performance.now();
  const about = eventFacts(account, entry);
  const span = tracing.start("append event", {
    kind: "internal",
    attributes: {
      "payments_gateway.account": account,
      "payments_gateway.event.kind": about.kind,
      "payments_gateway.event.source": about.source,
    },
  });
  let appended: R | undefined;
  try {
    appended = await span.run(write);
    return appended;
  } finally {
    // Undefined if it is written later.
    const { outcome, conflict } = appended ?? { outcome: "failed" as const, conflict: false };
    report("appended", { ...about, outcome, conflict, durationMs: performance.now() - startedMs });
    span.set({ "payments_gateway.event.outcome": outcome });
    if (outcome === "failed") span.fail("UNAVAILABLE");
    span.end();
  }
}

/** That of the active span. */
export function activeTrace(): string | undefined {
  return activeSpan.getStore()?.traceparent;
}

/** What is reported of an event. */
export function eventFacts(
  account: string,
  { kind, externalId, source }: Pick<Event, "kind" | "externalId" | "source">,
): Pick<Observations["appended"], "account" | "kind" | "externalId" | "source"> {
  const from = source === EventSource.RESPONSE ? "response" : "reconciliation";
  return {
    ...{ account, kind: kinds[kindOf(kind)].name, externalId },
    source: source === EventSource.CALLBACK ? "callback" : from,
  };
}
