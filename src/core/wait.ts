import { errorOfAbort, unlessAborted } from "../errors.ts";
import { type Event, WaitUntil } from "../gen/payments/v1/event_pb.ts";
import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { currentState } from "../ledger/current.ts";
import { noFacts } from "../ledger/facts.ts";
import type { Facts, OperationState } from "../ledger/log.ts";
import { outcomeFlags } from "../ledger/open-calls.ts";
import { stateAfter } from "../ledger/payment-state.ts";
import type { Kind } from "../model/kinds.ts";
import type { Cursor } from "../stores/cursor.ts";
import type { Context } from "./context.ts";
import type { Call } from "./core.ts";
import { type Awaited, endingOutcomes, follow } from "./watch.ts";

/** What was known at the end of a wait. */
export interface Waited {
  readonly facts: Facts;
  readonly callIsOpen: boolean;
  /** Empty when the log has nothing for the external_id yet. */
  readonly cursor: Cursor;
  /** The operation with the current state; undefined when all that is known is an open call. */
  readonly current: OperationState | undefined;
  /** A call was reported as NOT_DONE or NEEDS_OPERATOR: there is nothing more to wait for. */
  readonly isGivenUp: boolean;
}

/**
 * Waits, after the service has answered a call, until the state is what the caller wants. It reads
 * the ledger, and sends the service nothing. A wait never fails: whatever ends
 * it, it returns what is known.
 * @returns undefined when the stores cannot be read
 * @throws GatewayError when the caller goes away
 */
export async function wait(
  context: Pick<Context, "ledger" | "waits" | "waitLimits">,
  call: Call,
  about: Awaited,
  until: WaitUntil,
): Promise<Waited | undefined> {
  const { ledger, waits, waitLimits } = context;
  const { account, kind, externalId } = about;
  const isOpenEnded = call.deadlineMs === undefined || call.deadlineIsOurs;
  const waitMs = Math.min(timeLeftMs(call), isOpenEnded ? defaultWaitMs : Number.POSITIVE_INFINITY);
  // A caller with too many waits is answered at once, as without a wait.
  const release = waitLimits.take(call.caller);
  const end = new AbortController();
  const over = () => end.abort();
  const signal = AbortSignal.any([call.signal, end.signal]);
  const timer = setTimeout(over, Math.max(waitMs, 0));
  const leave = waits.join(over);
  if (waitMs <= 0 || !release) over();
  let known: Waited | undefined;
  const isOver = async (event?: Event) => {
    known = await read(context, about, signal, event);
    return isReached(kind, known, until);
  };
  try {
    if (signal.aborted) {
      known = await look(context, call, about);
    } else {
      call.onWait?.();
      // Attach the live part first, so that no event after the first look is missed.
      const reading = ledger.read(account, { kind, externalId }, "latest", { signal });
      const events = await unlessAborted(reading, signal);
      if (!(await isOver())) {
        for await (const event of follow(events, () => known?.callIsOpen === true)) {
          if (signal.aborted) break;
          if (await isOver(event)) break;
        }
      }
    }
  } catch {
    // The store is away, or this reader was too slow: return what is known by then.
  } finally {
    over();
    clearTimeout(timer);
    leave();
    release?.();
  }
  if (call.signal.aborted) throw errorOfAbort(call.signal);
  return known;
}

/**
 * What is known now. Undefined when the store fails, or is silent for long, until the caller goes
 * away or until shortly before its deadline.
 */
export async function look(
  context: Pick<Context, "ledger">,
  { signal, ...times }: Call,
  about: Awaited,
): Promise<Waited | undefined> {
  const over = new AbortController();
  const limitMs = Math.max(Math.min(timeLeftMs(times), maxLookMs), 0);
  const timer = setTimeout(() => over.abort(), limitMs);
  try {
    const ended = AbortSignal.any([signal, over.signal]);
    ended.throwIfAborted();
    return await read(context, about, ended);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Longest look at a store that is silent, in milliseconds. */
const maxLookMs = 5_000;

async function read(
  context: Pick<Context, "ledger">,
  { account, kind, externalId }: Awaited,
  signal: AbortSignal,
  event?: Event,
): Promise<Waited> {
  const reading = context.ledger.known(account, kind, externalId);
  const known = await unlessAborted(reading, signal);
  const { snapshot } = known;
  return {
    current: snapshot && currentState(snapshot),
    facts: snapshot ?? noFacts,
    callIsOpen: outcomeFlags(known).outcomeUnknown,
    cursor: snapshot?.cursor ?? "",
    isGivenUp: event !== undefined && endingOutcomes.has(event.callOutcome),
  };
}

/** What follows the answer of a call ends at least this long before the caller's deadline. */
const minLeftMs = 100;

/**
 * How long a call may go on after its answer is known, in milliseconds: up to shortly before the
 * caller's deadline, so that the answer still arrives. Infinity without a deadline.
 */
function timeLeftMs({ deadlineMs }: Pick<Call, "deadlineMs">): number {
  if (deadlineMs === undefined) return Number.POSITIVE_INFINITY;
  const leftMs = deadlineMs - Date.now();
  return leftMs - Math.max(leftMs / 10, minLeftMs);
}

/** Longest wait of a call whose caller gave no deadline, in milliseconds. */
const defaultWaitMs = 30_000;

function isReached(kind: Kind, known: Waited, until: WaitUntil): boolean {
  const { current, facts, callIsOpen, isGivenUp } = known;
  if (isGivenUp) return true;
  const state = stateAfter(kind, facts, callIsOpen);
  if (!openStates.has(state)) {
    const isConfirming = facts.operations.some(
      ({ operation, rank }) => operation === "confirm" && rank < 2,
    );
    return state !== PaymentState.AUTHORIZED || !isConfirming;
  }
  if (until !== WaitUntil.ACTION || state !== PaymentState.PENDING) return false;
  const { resource } = current?.event ?? {};
  return resource?.case === "payment" && Boolean(resource.value.action?.value);
}

const openStates: ReadonlySet<PaymentState> = new Set([
  PaymentState.UNSPECIFIED,
  PaymentState.PENDING,
  PaymentState.UNKNOWN,
]);
