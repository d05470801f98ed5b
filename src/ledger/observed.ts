import { overridden } from "../collections/overridden.ts";
import { EventSource } from "../gen/payments/v1/event_pb.ts";
import { kinds } from "../model/kinds.ts";
import type { Observations, Report } from "../report.ts";
import { activeSpan, type Tracing } from "../telemetry/tracing/tracing.ts";
import type { IntentStore, Recorded } from "./intents.ts";
import type { Appended, Entry, EventLog } from "./log.ts";

/** Wraps a log and calls so that what is appended is traced and reported. */
export function observed(
  { log, calls }: { readonly log: EventLog; readonly calls: IntentStore },
  tracing: Tracing,
  report: Report,
): { readonly log: EventLog; readonly calls: IntentStore } {
  /** The event remembers its trace (`traceOf`). `append` gives undefined if it is not done yet. */
  async function observe<T extends Appended | undefined>(
    account: string,
    entry: Entry,
    append: (traced: Entry) => Promise<T>,
  ): Promise<T> {
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
    const ended = (outcome: Observations["appended"]["outcome"], conflict = false) => {
      const durationMs = performance.now() - startedMs;
      report("appended", { account, kind, source, outcome, conflict, durationMs });
      span.set({ "payments_gateway.event.outcome": outcome });
      if (outcome === "failed") span.fail("UNAVAILABLE");
    };
    const { traceparent: trace } = span;
    try {
      const traced = trace === undefined ? entry : { ...entry, trace };
      const appended = await span.run(() => append(traced));
      ended(appended?.outcome ?? "failed", appended?.conflict);
      return appended;
    } catch (error) {
      ended("failed");
      throw error;
    } finally {
      span.end();
    }
  }

  async function record(
    account: string,
    told: Entry | undefined,
    write: (told: Entry | undefined) => Promise<Recorded>,
  ): Promise<Recorded> {
    if (!told) return write(undefined);
    let recorded: Recorded = {};
    await observe(account, told, async (traced) => {
      recorded = await write(traced);
      return recorded.appended;
    });
    return recorded;
  }

  return {
    log: overridden(log, {
      append: (account, entry) => observe(account, entry, (each) => log.append(account, each)),
    }),
    calls: overridden(calls, {
      end: (account, intent, ending, told) =>
        record(account, told, (entry) =>
          calls.end(account, intent, { ...ending, trace: traceparent() }, entry),
        ),
      looked: (account, intent, look) =>
        record(account, look.told, (told) =>
          calls.looked(account, intent, { ...look, told, trace: traceparent() }),
        ),
    }),
  };
}

const traceparent = () => activeSpan.getStore()?.traceparent;

/** What an event came from, as metrics and traces name it. */
export function sourceName(source: EventSource): Observations["appended"]["source"] {
  if (source === EventSource.CALLBACK) return "callback";
  return source === EventSource.RESPONSE ? "response" : "reconciliation";
}
