import { GatewayError, unlessAborted } from "../errors.ts";
import { type Event, WaitUntil } from "../gen/payments/v1/event_pb.ts";
import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { factsOfEntry } from "../ledger/facts.ts";
import { openCallsOf, outcomeFlags } from "../ledger/open-calls.ts";
import { stateAfter, statesAfter } from "../ledger/payment-state.ts";
import type { Context } from "./context.ts";
import type { Call } from "./core.ts";
import { type Made, notKnownYet } from "./money-calls.ts";
import { type Awaited, timeLeftMs, type Waited, wait } from "./wait.ts";

/** The answer of a call that moves money, with the state of its external_id in both forms. */
export interface MoneyAnswer<Result> extends StateAt {
  readonly answer: Result;
}

/** A state and its position in the log, as events carry them. The cursor may be empty. */
type StateAt = Pick<Event, "state" | "payoutState" | "cursor">;

/** Longest time that an answer waits for a store that is silent, in milliseconds. */
const maxReadMs = 5_000;

/**
 * Completes the answer of a call: waits if the caller wants it, and adds the state. The answer is
 * the payment or payout as known at the end of the wait; the call's own if there is no wait, if
 * only an attempt before it has failed, if that cannot be read, or if the caller goes away.
 * @throws GatewayError what the call threw, unless its outcome became known during the wait
 */
export async function moneyAnswer<Result extends object>(
  context: Context,
  call: Call,
  about: Awaited,
  until: WaitUntil,
  making: Promise<Made<Result>>,
): Promise<MoneyAnswer<Result>> {
  if (until === WaitUntil.UNSPECIFIED) return withState(context, call, about, await making);
  let made: Made<Result> | undefined;
  let lost: GatewayError | undefined;
  try {
    made = await making;
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.details.outcomeUnknown) throw error;
    if (call.signal.aborted) throw error;
    lost = error;
  }
  // An answer that is not in the log cannot be waited for: its own callback may never come.
  if (made?.entry && !made.appended) return withState(context, call, about, made);
  const known = await wait(context, call, about, until).catch((error: unknown) => {
    // The call was sent: what ended the wait must not read as if the call had done nothing.
    if (lost && error instanceof GatewayError) throw notKnownYet(about.externalId, error);
    return undefined;
  });
  const isOlder = made && known && isOfEarlierAttempt(about, made, known);
  const told = isOlder ? undefined : (known?.current?.event.resource.value as Result | undefined);
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

/**
 * Adds the state to an answer. It never throws: the money has moved, so the caller gets a state
 * whatever becomes of the store. When the store fails, is silent for long or until shortly before
 * the caller's deadline, or the call's signal aborts first, the state comes from the answer alone.
 */
async function withState<Result>(
  context: Context,
  { signal, ...times }: Call,
  about: Awaited,
  made: Made<Result>,
): Promise<MoneyAnswer<Result>> {
  const { answer, entry, appended } = made;
  const byItself = { answer, ...stateBy(about, made) };
  if (appended?.event || (entry && !appended)) return byItself;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), Math.min(timeLeftMs(times), maxReadMs));
  try {
    const ended = AbortSignal.any([signal, over.signal]);
    ended.throwIfAborted();
    const known = openCallsOf(context, about.account, about.kind, about.externalId);
    const { openCalls, snapshot } = await unlessAborted(known, ended);
    const facts = snapshot ?? factsOfEntry(entry);
    const { outcomeUnknown } = outcomeFlags(openCalls);
    return {
      answer,
      ...statesAfter(about.kind, facts, outcomeUnknown),
      cursor: snapshot?.cursor ?? "",
    };
  } catch {
    return byItself;
  } finally {
    clearTimeout(timer);
  }
}
