import { EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Kind } from "../model/kinds.ts";
import type { EventLog } from "./log.ts";
import { subjectKey } from "./topics.ts";
import { traceOf } from "./trace-of.ts";

/** Which call caused what is told later of a payment or payout, as far as calls are traced. */
export interface Causes {
  /** A call that moves money leaves; `trace` is its `traceparent`, undefined when it is not traced. */
  sent(account: string, kind: Kind, externalId: string, trace: string | undefined): void;
  /**
   * The `traceparent` of the last call for an external id: one that this process made lately, or one
   * whose answer is among the newest events of the log. Never rejects.
   */
  of(account: string, kind: Kind, externalId: string): Promise<string | undefined>;
}

export function createCauses(log: EventLog): Causes {
  /** A callback may overtake the answer, which the log learns of. */
  const lately = new Map<string, string>();
  const keyOf = (account: string, kind: Kind, externalId: string) =>
    `${account} ${subjectKey(kind, externalId)}`;

  return {
    sent(account, kind, externalId, trace) {
      const key = keyOf(account, kind, externalId);
      lately.delete(key);
      if (trace === undefined) return;
      lately.set(key, trace);
      if (lately.size <= maxCalls) return;
      const [oldest] = lately.keys();
      if (oldest !== undefined) lately.delete(oldest);
    },

    async of(account, kind, externalId) {
      const known = lately.get(keyOf(account, kind, externalId));
      if (known !== undefined) return known;
      try {
        const events = await log.history(account, kind, externalId, maxEvents);
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
