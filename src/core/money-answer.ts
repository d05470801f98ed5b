import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { type Event, WaitUntil } from "../gen/payments/v1/event_pb.ts";
import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { factsOfEntry } from "../ledger/facts.ts";
import { stateAfter, statesAfter } from "../ledger/payment-state.ts";
import { moneyMethods } from "../model/money-methods.ts";
import type { Context } from "./context.ts";
import { type Made, type MoneyCall, notKnownYet } from "./money-calls.ts";
import { type Awaited, type Waited, wait } from "./wait.ts";

/** The answer of a call that moves money, with the state of its external_id in both forms. */
type MoneyAnswer<Result> = StateAt & { readonly answer: Result };

/** A state and its position in the log, as events carry them. The cursor may be empty. */
type StateAt = Pick<Event, "state" | "payoutState" | "cursor">;

/** A call that moves money, whose caller may want to wait. */
interface AwaitedCall<Desc extends DescMessage> extends MoneyCall<Desc> {
  readonly request: Message & { readonly waitUntil: WaitUntil };
}

/**
 * Makes a call and completes its answer: waits if the caller wants it, and adds the state. The answer
 * is the payment or payout as known at the end of the wait; the call's own if there is no wait, if
 * only an attempt before it has failed, if that cannot be read, or if the caller goes away. The
 * money has moved: whatever becomes of the store, the caller gets an answer with a state, which then
 * comes from the answer alone.
 * @throws GatewayError what the call threw, unless its outcome became known during the wait
 */
export async function moneyAnswer<Desc extends DescMessage>(
  context: Context,
  moneyCall: AwaitedCall<Desc>,
): Promise<MoneyAnswer<MessageShape<Desc>>> {
  type Result = MessageShape<Desc>;
  const { call, externalId } = moneyCall;
  const { kind } = moneyMethods[moneyCall.method];
  const about = { account: call.caller.account, kind, externalId };
  const { waitUntil: until } = moneyCall.request;
  const waits = until !== WaitUntil.UNSPECIFIED;
  // A repeat of its `Idempotency-Key` may wait for something else.
  const request = waits
    ? { ...moneyCall.request, waitUntil: WaitUntil.UNSPECIFIED }
    : moneyCall.request;
  let made: Made<Result> | undefined;
  let lost: GatewayError | undefined;
  try {
    made = await context.moneyCalls.run({ ...moneyCall, request });
  } catch (error) {
    if (!waits || !(error instanceof GatewayError) || !error.details.outcomeUnknown) throw error;
    if (call.signal.aborted) throw error;
    lost = error;
  }
  // An answer that is not in the log cannot be waited for: its own callback may never come.
  const isNotInLog = made?.entry && !made.appended;
  if (made && (isNotInLog || (!waits && made.appended?.event))) {
    return { answer: made.answer, ...stateBy(about, made) };
  }
  const known = await wait(context, call, about, until).catch((error: unknown) => {
    // The call was sent: what ended the wait must not read as if the call had done nothing.
    if (lost && error instanceof GatewayError) throw notKnownYet(externalId, error);
    return undefined;
  });
  const isOlder = made && known && isOfEarlierAttempt(about, made, known);
  const isAnswer = waits && !isOlder;
  const told = isAnswer ? (known?.current?.event.resource.value as Result | undefined) : undefined;
  if (lost && (!told || known?.callIsOpen || known?.isGivenUp)) throw lost;
  const answer = told ?? (made as Made<Result>).answer;
  if (!known) return { answer, ...stateBy(about, made as Made<Result>) };
  const { facts, callIsOpen, cursor } = known;
  return { answer, ...statesAfter(about.kind, facts, callIsOpen), cursor };
}

/** Whether what is known shows a failure that is not the call's: it has not failed itself. */
function isOfEarlierAttempt({ kind }: Awaited, { entry }: Made<unknown>, known: Waited): boolean {
  if (known.current?.status !== "failure" || entry?.status === "failure") return false;
  return stateAfter(kind, known.facts, known.callIsOpen) !== PaymentState.FAILED;
}

/** The state as the event of an answer has it; as the answer alone shows it without an event. */
function stateBy({ kind }: Awaited, { entry, appended }: Made<unknown>): StateAt {
  if (!appended?.event) return { ...statesAfter(kind, factsOfEntry(entry)), cursor: "" };
  const { state, payoutState, cursor } = appended.event;
  return { state, payoutState, cursor };
}
