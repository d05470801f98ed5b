import { type Event, EventSource } from "../gen/payments/v1/event_pb.ts";
import { type KindName, kindOf, kinds } from "../model/kinds.ts";
import type { Span, Tracing } from "../telemetry/tracing/tracing.ts";
import type { Appended, Entry, EventLog } from "./log.ts";

/** Receives the outcome of each append, for metrics. */
export interface AppendObserver {
  onAppend(append: {
    readonly account: string;
    readonly kind: KindName;
    readonly source: "callback" | "response" | "reconciliation";
    readonly outcome: Appended["outcome"] | "failed";
    readonly conflict: boolean;
    readonly durationMs: number;
  }): void;
}

/** Counts the outcomes of calls, which the ledger publishes by itself, like other events. */
export function outcomeObserver({ onAppend }: AppendObserver) {
  return (published: { account: string; event: Event; durationMs: number }) => {
    const { account, event, durationMs } = published;
    const { name: kind } = kinds[kindOf(event.kind)];
    const source = sources[event.source] ?? "reconciliation";
    onAppend({ account, kind, source, outcome: "stored", conflict: false, durationMs });
  };
}

/** Runs an append, traced and reported to the observer. Undefined: it is not done yet. */
export type ObserveAppend = <T extends Appended | undefined>(
  account: string,
  entry: Entry,
  append: (traced: Entry) => Promise<T>,
) => Promise<T>;

/** The event remembers its trace (`traceOf`). */
export function createObserveAppend(tracing: Tracing, observer: AppendObserver): ObserveAppend {
  return async (account, entry, append) => {
    const startedMs = performance.now();
    const kind = kinds[entry.kind].name;
    const source = sources[entry.source] ?? "reconciliation";
    const span = tracing.start("append event", {
      kind: "internal",
      attributes: {
        "payments_gateway.account": account,
        "payments_gateway.event.kind": kind,
        "payments_gateway.event.source": source,
      },
    });
    const report = ({ outcome, conflict }: Pick<Appended, "conflict"> & Outcome) => {
      const durationMs = performance.now() - startedMs;
      observer.onAppend({ account, kind, source, outcome, conflict, durationMs });
      span.set({ "payments_gateway.event.outcome": outcome });
    };
    const failed = () => {
      report({ outcome: "failed", conflict: false });
      span.fail("UNAVAILABLE");
    };
    try {
      const appended = await span.run(() => append(traced(entry, span)));
      if (appended) report(appended);
      else failed();
      return appended;
    } catch (error) {
      failed();
      throw error;
    } finally {
      span.end();
    }
  };
}

/** Wraps a log so that each append is observed. */
export function observedLog(log: EventLog, observe: ObserveAppend): EventLog {
  return {
    durable: log.durable,
    snapshot: log.snapshot.bind(log),
    read: log.read.bind(log),
    history: log.history.bind(log),
    cursorBefore: log.cursorBefore.bind(log),
    unfinished: log.unfinished.bind(log),
    dismiss: log.dismiss.bind(log),
    addDeadLetter: log.addDeadLetter.bind(log),
    deadLetters: log.deadLetters.bind(log),
    deadLetter: log.deadLetter.bind(log),
    countDeadLetters: log.countDeadLetters.bind(log),
    removeDeadLetter: log.removeDeadLetter.bind(log),
    close: log.close.bind(log),
    append: (account, entry) => observe(account, entry, (each) => log.append(account, each)),
  };
}

interface Outcome {
  readonly outcome: Appended["outcome"] | "failed";
}

const sources: Readonly<Partial<Record<EventSource, "callback" | "response" | "reconciliation">>> =
  {
    [EventSource.CALLBACK]: "callback",
    [EventSource.RESPONSE]: "response",
    [EventSource.RECONCILIATION]: "reconciliation",
  };

function traced(entry: Entry, { traceparent }: Span): Entry {
  return traceparent === undefined ? entry : { ...entry, trace: traceparent };
}
