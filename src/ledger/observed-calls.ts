import type { ObserveAppend } from "../events/observed-log.ts";
import type { IntentStore, Recorded } from "../intents/store.ts";

/** Wraps the calls of a ledger so that the events that come with their endings are observed. */
export function observedCalls(calls: IntentStore, observe: ObserveAppend): IntentStore {
  return {
    begin: calls.begin.bind(calls),
    open: calls.open.bind(calls),
    track: calls.track.bind(calls),
    due: calls.due.bind(calls),
    postpone: calls.postpone.bind(calls),
    scheduleNow: calls.scheduleNow.bind(calls),
    giveUp: calls.giveUp.bind(calls),
    stats: calls.stats.bind(calls),
    unsettled: calls.unsettled.bind(calls),
    nowMs: calls.nowMs.bind(calls),
    lease: calls.lease.bind(calls),
    close: calls.close.bind(calls),
    async end(account, intent, ending, told) {
      if (!told) return calls.end(account, intent, ending);
      let recorded: Recorded = {};
      await observe(account, told, async (traced) => {
        recorded = await calls.end(account, intent, ending, traced);
        return recorded.appended;
      });
      return recorded;
    },
  };
}
