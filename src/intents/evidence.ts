import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { OperationState, Snapshot } from "../events/log.ts";
import type { Intent, MoneyMethod } from "./store.ts";

/** What the event log tells of a call that has no understood answer, or a pending one. */
export type Evidence =
  /** It is over, or can move no money any more. */
  | { readonly kind: "settled" }
  /** The service has it: it goes on as this payment or payout. */
  | { readonly kind: "arrived"; readonly subjectId: string };

/**
 * Reads what became of a call from the events of its external_id; undefined while they do not tell.
 * Known failures of earlier attempts are no word about this one. A success is, whosever it was: at
 * most one payment per external_id succeeds (spec, Payments).
 */
export function evidenceOf(intent: Intent, snapshot: Snapshot | undefined): Evidence | undefined {
  if (!snapshot) return undefined;
  const states = snapshot.states.filter(({ operation }) =>
    operations[intent.method].includes(operation),
  );
  if (intent.method === "CreatePayment" && states.some(succeeded)) return { kind: "settled" };
  if (intent.state === "pending") {
    const own = states.find(({ subjectId }) => subjectId === intent.subjectId);
    return own?.rank === 2 ? { kind: "settled" } : undefined;
  }
  const own = states.filter((state) => isOf(intent, state));
  if (own.some(({ rank }) => rank === 2)) return { kind: "settled" };
  const [arrived] = own;
  return arrived && { kind: "arrived", subjectId: arrived.subjectId };
}

/** What the service calls the operation that a method asks for. */
export const operations: Readonly<Record<MoneyMethod, readonly string[]>> = {
  CreatePayment: ["payment"],
  CreateRecurrentPayment: ["recurrent", "payment"],
  ConfirmPayment: ["confirm"],
  RequestPayout: ["payout"],
};

function succeeded({ status }: OperationState): boolean {
  return status === "success";
}

function isOf({ answered, startedAtMs, method }: Intent, state: OperationState): boolean {
  const { receivedAt } = state.event;
  if (receivedAt === undefined || timestampMs(receivedAt) < startedAtMs) return false;
  // A confirmation goes under the id of the payment that it confirms.
  return method === "ConfirmPayment" || !answered.includes(state.subjectId);
}
