import { EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Kind } from "../model/kinds.ts";
import type { Ledger } from "./ledger.ts";
import { recordKey } from "./record.ts";
import { traceOf } from "./stored-event.ts";

export type Causes = ReturnType<typeof createCauses>;

/** Finds the call that caused an event or callback of a payment or payout, if calls are traced. */
export function createCauses(ledger: Ledger) {
  /** Traces of recent calls: a callback may arrive before the log has the answer with the trace. */
  const lately = new Map<string, string>();
  const keyOf = (account: string, kind: Kind, externalId: string) =>
    `${account} ${recordKey(kind, externalId)}`;

  return {
    /** Records a call that is sent; `trace` is its `traceparent`, undefined if it is not traced. */
    sent(account: string, kind: Kind, externalId: string, trace: string | undefined): void {
      const key = keyOf(account, kind, externalId);
      lately.delete(key);
      if (trace === undefined) return;
      lately.set(key, trace);
      if (lately.size <= maxCalls) return;
      const [oldest] = lately.keys();
      if (oldest !== undefined) lately.delete(oldest);
    },

    /**
     * The `traceparent` of the last call for an external id, from this process's recent calls or from
     * an answer among the newest events of the log. Never rejects.
     */
    async of(account: string, kind: Kind, externalId: string): Promise<string | undefined> {
      const known = lately.get(keyOf(account, kind, externalId));
      if (known !== undefined) return known;
      try {
        const events = await ledger.history(account, kind, externalId, maxEvents);
        const answer = events.findLast(
          (event) => event.source === EventSource.RESPONSE && traceOf(event) !== undefined,
        );
        return answer && traceOf(answer);
      } catch {
        return undefined;
      }
    },
  };
}

const maxCalls = 10_000;
const maxEvents = 20;
