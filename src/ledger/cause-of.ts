import { EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Kind } from "../model/kinds.ts";
import type { Ledger } from "./ledger.ts";
import { traceOf } from "./stored-event.ts";

/**
 * The `traceparent` of the call that caused an event or callback of a payment or payout, if calls are
 * traced: of one that is open, or of the newest answer in the log. Never rejects.
 */
export async function causeOf(
  ledger: Ledger,
  account: string,
  kind: Kind,
  externalId: string,
): Promise<string | undefined> {
  const isTraced = (trace: string | undefined) => trace !== undefined;
  try {
    const { intents } = await ledger.known(account, kind, externalId);
    const open = intents.map(({ trace }) => trace).findLast(isTraced);
    if (open !== undefined) return open;
    const events = await ledger.history(account, kind, externalId, maxEvents);
    const answers = events.filter(({ source }) => source === EventSource.RESPONSE);
    return answers.map(traceOf).findLast(isTraced);
  } catch {
    return undefined;
  }
}

const maxEvents = 20;
