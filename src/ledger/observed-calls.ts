import { activeSpan } from "../telemetry/tracing/active-span.ts";
import type { IntentStore, Recorded } from "./intents.ts";
import type { Entry } from "./log.ts";
import type { ObserveAppend } from "./observed-log.ts";

const traceparent = () => activeSpan.getStore()?.traceparent;

/** Wraps the calls of a ledger so that the events that come with their endings are observed. */
export function observedCalls(calls: IntentStore, observe: ObserveAppend): IntentStore {
  return {
    begin: calls.begin.bind(calls),
    known: calls.known.bind(calls),
    track: calls.track.bind(calls),
    due: calls.due.bind(calls),
    giveUp: calls.giveUp.bind(calls),
    stats: calls.stats.bind(calls),
    unsettled: calls.unsettled.bind(calls),
    nowMs: calls.nowMs.bind(calls),
    lease: calls.lease.bind(calls),
    close: calls.close.bind(calls),
    end: (account, intent, ending, told) =>
      observed(account, told, (entry) =>
        calls.end(account, intent, { ...ending, trace: traceparent() }, entry),
      ),
    looked: (account, intent, look) =>
      observed(account, look.told, (told) =>
        calls.looked(account, intent, { ...look, told, trace: traceparent() }),
      ),
  };

  async function observed(
    account: string,
    told: Entry | undefined,
    record: (told: Entry | undefined) => Promise<Recorded>,
  ): Promise<Recorded> {
    if (!told) return record(undefined);
    let recorded: Recorded = {};
    await observe(account, told, async (traced) => {
      recorded = await record(traced);
      return recorded.appended;
    });
    return recorded;
  }
}
