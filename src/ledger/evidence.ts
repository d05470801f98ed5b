import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { boundedId } from "../model/bounded-id.ts";
import { type MoneyMethod, moneyMethods } from "../model/money-methods.ts";
import { msOf, placeIn } from "../stores/cursor.ts";
import type { Ending, Evidence, OpenCall } from "./intents.ts";
import type { Fact, Facts, PlacedFact } from "./log.ts";
import { paymentState, succeeded } from "./payment-state.ts";

/**
 * Reads what became of a call that has no understood answer, or a pending one, from the events of its
 * external_id. It is closed if it is over, or can move no money any more; then it has no mark if that is
 * stored already. It is pending if the service has it, and it continues as this payment or payout.
 * Undefined while the events do not show it. What one call made says nothing about another call, so
 * each state is evidence for one call at most:
 * - not for this call if the state is marked as accounted for, or began before
 *   the call;
 * - not if another open call has the first claim to it: a running one, since its own answer will
 *   settle it, or one of unknown outcome that began earlier;
 * - not for a running call if it may be that of any other open call, given up or not: the call may
 *   still move money;
 * - a failure is not if another open call may have made it and is left with none: that call's own
 *   answer may come, while this one may still charge;
 * - an attempt that failed or goes on is not if it may be that of a call which ended without naming
 *   its payment (`namelessMark`), nor any that may be of a call which the success of another one
 *   settled (`markByAnother`);
 * - a failure is not for a running call: it may be that of a call which the store does not know yet,
 *   while this one may still charge.
 *
 * A success of a payment settles every CreatePayment, whichever call made it: at most one payment
 * per external_id succeeds (spec, Payments). A call that is settled so may be an attempt even so, if
 * the payment was taken back: it leaves a mark. The success counts no more once the payment is cancelled
 * or refunded whole: the spec does not say whether the service then takes another payment. So it does
 * not settle a call that may be sent yet: by then the payment may have been taken back.
 * @param mayBeSentYet the call is within its lease
 */
export function evidenceOf(
  intent: OpenCall,
  known: Evidence,
  mayBeSentYet = false,
): ShownEnding | undefined {
  const { method } = intent;
  const find = (is: (state: Fact) => boolean) =>
    known.operations.find((state) => is(state) && isOperationOf(method, state));
  const isPaid = !mayBeSentYet && method === "CreatePayment" && find(succeeded) && isKept(known);
  if (isNamed(intent)) {
    const isOfIt = ({ subjectId }: Fact) => subjectId === intent.subjectId;
    const isOver = find(isOfIt) && !find((state) => isOfIt(state) && state.rank !== 2);
    return isPaid || isOver ? { state: "closed", key: "keep" } : undefined;
  }
  const found = claimed(intent, known);
  const own = found && intent.state === "running" && failed(found) ? undefined : found;
  if (!own) {
    return isPaid ? { state: "closed", mark: markByAnother, key: "keep" } : undefined;
  }
  const { subjectId } = own;
  const mark = markOf(method, own);
  return isPaid || own.rank === 2
    ? { state: "closed", mark, key: "keep" }
    : { state: "pending", subjectId, mark, key: "keep" };
}

/** What events show of a call's end. Its key is not theirs to end: it waits for the call's own answer. */
export type ShownEnding = Exclude<Ending, { readonly state: "unknown" }>;

/** The method that asks for an operation; undefined if no call of this gateway asks for it. */
export function methodOf(operation: string): MoneyMethod | undefined {
  const methods = Object.keys(moneyMethods) as MoneyMethod[];
  return methods.find((method) => moneyMethods[method].operations[0] === operation);
}

/** The mark of a call: it identifies what the call made among all calls for its external_id. */
export function markOf(
  method: MoneyMethod,
  { subjectId, operationId = "" }: { readonly subjectId: string; readonly operationId?: string },
): string {
  if (subjectId === "") return namelessMark(method);
  // A confirmation has the id of the payment that it confirms.
  return method === "ConfirmPayment" ? `confirm ${operationId || subjectId}` : subjectId;
}

/** The mark of a call that was refused. The service may still report its failure. */
export function markOfRefusal(method: MoneyMethod, paymentId: string | undefined): string {
  // A confirmation's payment_id is that of the payment that was to be confirmed.
  return method === "ConfirmPayment" || !paymentId ? namelessMark(method) : boundedId(paymentId);
}

/**
 * The mark of a call that is over and did not name its payment: one attempt of the external_id that
 * failed, or that goes on and will be told as failed, may be its own, and it is unknown which.
 */
function namelessMark(method: MoneyMethod): string {
  return `? ${method}`;
}

/**
 * The mark of a CreatePayment that the success of another one settled: if that was taken back, one
 * attempt of the external_id may be its own, at its end or not.
 */
export const markByAnother = "! CreatePayment";

/** Whether a call of the method may have made what one with this mark did. */
function isNameless(mark: string, method: MoneyMethod): boolean {
  if (mark === markByAnother) return haveCommonOperation("CreatePayment", method);
  const methods = Object.keys(moneyMethods) as MoneyMethod[];
  return methods.some((one) => mark === namelessMark(one) && haveCommonOperation(one, method));
}

/** Whether it is known which payment or payout the call made. */
export function isNamed({ state, subjectId }: OpenCall): boolean {
  return state === "pending" && subjectId !== "";
}

function operationsOf(method: MoneyMethod): readonly string[] {
  return moneyMethods[method].operations;
}

function haveCommonOperation(one: MoneyMethod, other: MoneyMethod): boolean {
  return operationsOf(one).some((operation) => operationsOf(other).includes(operation));
}

export function isOperationOf(
  method: MoneyMethod,
  { operation }: Pick<Fact, "operation">,
): boolean {
  return operationsOf(method).includes(operation);
}

/** Whether the payment stands: what was paid or held was not taken back, or not all of it. */
function isKept(known: Facts): boolean {
  return kept.has(paymentState(known));
}

const kept: ReadonlySet<PaymentState> = new Set([
  PaymentState.PAID,
  PaymentState.AUTHORIZED,
  PaymentState.PARTIALLY_REFUNDED,
]);

/**
 * The state that is left for a call when the calls with an earlier claim have taken theirs; a failure
 * only if those with a later claim have one, too.
 */
function claimed(
  intent: OpenCall,
  { calls: open, operations, marks }: Evidence,
): PlacedFact | undefined {
  const taken = new Set<PlacedFact>();
  const take = (of: OpenCall, isSure = false) => {
    const { method } = of;
    const isAnothers = (state: Fact) =>
      marks.includes(markOf(method, state)) ||
      // The answer to another confirmation may not have named its operation.
      (isSure && marks.includes(markOf(method, { subjectId: state.subjectId })));
    const all = operations
      .filter((state) => isOperationOf(method, state) && !isAnothers(state))
      // Failures last: to take one for a call's end while another attempt goes on could get the
      // call made a second time.
      .sort((a, b) => failed(a) - failed(b) || byPlace(beganAt(method, a), beganAt(method, b)));
    // Each of these calls may have made an attempt that fails, or goes on until it is told as failed:
    // as many failures are left to them, and until all are known, so is what goes on. One that another
    // one's success settled may have succeeded too, once that was taken back.
    const nameless = marks.filter((mark) => isNameless(mark, method));
    const failures = all.filter(failed).slice(0, nameless.length);
    const later = all.filter((state) => succeeded(state) && beganAfter(of, state));
    const settled = nameless.filter((mark) => mark === markByAnother).length;
    const areTheirs = [...failures, ...later.slice(0, settled)];
    const found = all.find((state) => {
      if (areTheirs.includes(state) || taken.has(state)) return false;
      if (state.rank !== 2 && failures.length < nameless.length) return false;
      return beganAfter(of, state);
    });
    if (found) taken.add(found);
    return found;
  };
  const rivals = open.filter((other) => isRival(other, intent)).sort(byClaim);
  for (const rival of rivals) take(rival);
  const own = take(intent, intent.state === "running");
  if (!own || !failed(own)) return own;
  const mayBeOf = (other: OpenCall) =>
    !(other.id === intent.id || rivals.includes(other) || isNamed(other) || other.needsOperator) &&
    isOperationOf(other.method, own) &&
    beganAfter(other, own);
  const left = open.filter(mayBeOf).sort(byClaim);
  return left.every((other) => take(other)) ? own : undefined;
}

function failed({ status }: Fact): 0 | 1 {
  return status === "failure" ? 1 : 0;
}

function isRival(other: OpenCall, intent: OpenCall): boolean {
  return (
    other.id !== intent.id &&
    (!isNamed(other) || (intent.state === "running" && other.method === "ConfirmPayment")) &&
    (intent.state === "running" || (!other.needsOperator && byClaim(other, intent) < 0)) &&
    haveCommonOperation(other.method, intent.method)
  );
}

function byClaim(a: OpenCall, b: OpenCall): number {
  const running = ({ state }: OpenCall) => (state === "running" ? 0 : 1);
  if (running(a) !== running(b)) return running(a) - running(b);
  return startedMs(a) - startedMs(b) || (a.id < b.id ? -1 : 1);
}

/** A call of the step under way has no start yet: it is the last. */
function startedMs({ startedAt }: OpenCall): number {
  return isUnderWay(startedAt) ? Number.POSITIVE_INFINITY : Number(startedAt);
}

/**
 * Where the log has the attempt's first event. Confirmations of one payment share a state: there the
 * last event counts.
 */
function beganAt(method: MoneyMethod, { since, place }: PlacedFact): string {
  return method === "ConfirmPayment" ? place : since;
}

/** Whether the attempt began after the call. */
function beganAfter(call: OpenCall, state: PlacedFact): boolean {
  const { method, after } = call;
  const place = beganAt(method, state);
  if (isUnderWay(place)) return true;
  // A snapshot's places are cursors, with an epoch behind them.
  return after === undefined ? msOf(place) >= startedMs(call) : placeIn(place) > after;
}

/** An event of the step under way has no place yet: it is the last. */
function isUnderWay(place: string): boolean {
  return place.includes(":");
}

function byPlace(a: string, b: string): number {
  return Number(isUnderWay(a)) - Number(isUnderWay(b)) || (a < b ? -1 : 1);
}
