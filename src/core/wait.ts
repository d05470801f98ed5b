import { errorOfAbort, unlessAborted } from "../errors.ts";
import { type Event, WaitUntil } from "../gen/payments/v1/event_pb.ts";
import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { currentState } from "../ledger/current.ts";
import type { Facts, OperationState } from "../ledger/log.ts";
import { outcomeFlags } from "../ledger/open-calls.ts";
import { stateAfter } from "../ledger/payment-state.ts";
import type { Kind } from "../model/kinds.ts";
import type { Cursor } from "../stores/cursor.ts";
import type { Context } from "./context.ts";
import type { Call } from "./core.ts";
import { endsCall, follow } from "./watch.ts";

/** The payment or payout that a call waits for. */
export interface Awaited {
  readonly account: string;
  readonly kind: Kind;
  readonly externalId: string;
}

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
 * What is known after the service has answered a call: now, or once the state is what the caller
 * wants to wait for. It reads the ledger, and sends the service nothing. A wait never fails: whatever
 * ends it, it returns what is known.
 * @returns undefined when the stores cannot be read, or are silent for long
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
  const end = new AbortController();
  const over = () => end.abort();
  const leave = until === WaitUntil.UNSPECIFIED ? undefined : waits.join(over);
  const isOpenEnded = call.deadlineMs === undefined || call.deadlineIsOurs;
  const longestMs = !leave ? maxLookMs : isOpenEnded ? defaultWaitMs : Number.POSITIVE_INFINITY;
  const leftMs = Math.min(timeLeftMs(call), longestMs);
  const mayWait = leave && leftMs > 0 && !end.signal.aborted;
  const release = mayWait ? waitLimits.take(call.caller) : undefined;
  if (leave && !release) {
    // Too many waits of the caller, no time, or a shutdown: answered at once, as without a wait.
    leave();
    return wait(context, call, about, WaitUntil.UNSPECIFIED);
  }
  const timer = setTimeout(over, Math.max(leftMs, 0));
  const signal = AbortSignal.any([call.signal, end.signal]);
  let known: Waited | undefined;
  const isOver = async (event?: Event) => {
    known = await read(context, about, signal, event);
    return !release || isReached(kind, known, until);
  };
  try {
    signal.throwIfAborted();
    if (release) call.onWait?.();
    // Attach the live part first, so that no event after the first look is missed.
    const reading = release && ledger.read(account, { kind, externalId }, "latest", { signal });
    const events = reading && (await unlessAborted(reading, signal));
    if (!(await isOver()) && events) {
      for await (const event of follow(events, () => known?.callIsOpen === true)) {
        if (signal.aborted) break;
        if (await isOver(event)) break;
      }
    }
  } catch {
    // The store is away, or this reader was too slow: return what is known by then.
  } finally {
    over();
    clearTimeout(timer);
    leave?.();
    release?.();
  }
  if (call.signal.aborted) throw errorOfAbort(call.signal);
  return known;
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
  return {
    current: currentState(known),
    facts: known,
    callIsOpen: outcomeFlags(known).outcomeUnknown,
    cursor: known.cursor,
    isGivenUp: event !== undefined && endsCall(event),
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
