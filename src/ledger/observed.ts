import { EventSource } from "../gen/payments/v1/event_pb.ts";
import { kinds } from "../model/kinds.ts";
import { noReport, type Observations, type Report } from "../report.ts";
import { activeSpan, noTracing, type Tracing } from "../telemetry/tracing/tracing.ts";
import type { Recorded } from "./intents.ts";
import type { Entry } from "./log.ts";

/** To whom a ledger tells what is appended to it. */
export interface Observers {
  /** Default: nothing is reported. */
  readonly report?: Report | undefined;
  /** Default: nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

/**
 * Traces and reports what an entry becomes; without an entry there is nothing to tell.
 * @param write gets the entry with its trace (`traceOf`)
 */
export async function observed<R extends Recorded, E extends Entry | undefined>(
  { report = noReport, tracing = noTracing }: Observers,
  account: string,
  entry: E,
  write: (traced: E) => Promise<R>,
): Promise<R> {
  if (!entry) return write(entry);
  const startedMs = performance.now();
  const kind = kinds[entry.kind].name;
  const source = sourceName(entry.source);
  const span = tracing.start("append event", {
    kind: "internal",
    attributes: {
      "payments_gateway.account": account,
      "payments_gateway.event.kind": kind,
      "payments_gateway.event.source": source,
    },
  });
  let outcome: Observations["appended"]["outcome"] = "failed";
  let conflict = false;
  try {
    const { traceparent: trace } = span;
    const traced = trace === undefined ? entry : { ...entry, trace };
    const recorded = await span.run(() => write(traced));
    // Undefined if it is written later.
    if (recorded.appended) ({ outcome, conflict } = recorded.appended);
    return recorded;
  } finally {
    const durationMs = performance.now() - startedMs;
    const { externalId } = entry;
    report("appended", { account, kind, externalId, source, outcome, conflict, durationMs });
    span.set({ "payments_gateway.event.outcome": outcome });
    if (outcome === "failed") span.fail("UNAVAILABLE");
    span.end();
  }
}

/** That of the active span. */
export function activeTrace(): string | undefined {
  return activeSpan.getStore()?.traceparent;
}

/** What an event came from, as metrics and traces name it. */
export function sourceName(source: EventSource): Observations["appended"]["source"] {
  if (source === EventSource.CALLBACK) return "callback";
  return source === EventSource.RESPONSE ? "response" : "reconciliation";
}
