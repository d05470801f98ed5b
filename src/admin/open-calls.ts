import type { IntentStore, UnsettledIntent } from "../ledger/intents.ts";
import { kinds } from "../model/kinds.ts";
import type { Calls, OpenCall } from "./console-api.ts";

/** Calls that move money whose outcome is unknown, or whose payment is pending. */
export async function openCallsOf(intents: IntentStore, account: string): Promise<Calls> {
  const { intents: open, total } = await intents.unsettled(account, maxCalls);
  return { nowMs: Date.now(), total, calls: open.map(view) };
}

const maxCalls = 100;

function view(intent: UnsettledIntent): OpenCall {
  const { id, method, kind, externalId, state, startedAtMs, checks, notFound, needsOperator } =
    intent;
  return {
    ...{ id, method, externalId, startedAtMs, checks, notFound, needsOperator },
    kind: kinds[kind].name,
    // A `running` call is listed only after its lease ended: its replica is gone.
    state: state === "pending" ? "pending" : "unknown",
    ...(intent.nextLookMs !== undefined && { nextLookMs: intent.nextLookMs }),
  };
}
