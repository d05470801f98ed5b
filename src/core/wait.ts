import { errorOfAbort, unlessAborted } from "../errors.ts";
import { type Event, WaitUntil } from "../gen/payments/v1/event_pb.ts";
import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { currentState } from "../ledger/current.ts";
import { noFacts } from "../ledger/facts.ts";
import type { Facts, OperationState } from "../ledger/log.ts";
import { type OpenCalls, openCallsOf, outcomeFlags } from "../ledger/open-calls.ts";
import { stateAfter } from "../ledger/payment-state.ts";
import type { Kind } from "../model/kinds.ts";
import type { Cursor } from "../stores/cursor.ts";
import type { Context } from "./context.ts";
import type { Call } from "./core.ts";
import { endingOutcomes, follow } from "./watch.ts";

/** The external_id that a call waits for. */
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
 * Waits, after the service has answered a call, until the state is what the caller wants. It reads
 * the event log and the intents, and sends the service nothing. A wait never fails: whatever ends
 * it, it returns what is known.
 * @returns undefined when the stores cannot be read
 * @throws GatewayError when the caller goes away
 */
export async function wait(
  context: Pick<Context, "log" | "intents" | "waits" | "waitLimits">,
  call: Call,
  about: Awaited,
  until: WaitUntil,
): Promise<Waited | undefined> {
  const { log, waits } = context;
  const { account, kind, externalId } = about;
  const waitMs = Math.min(timeLeftMs(call), maxWaitMs(call));
  const release = placeOf(context, call);
  const end = new AbortController();
  const over = () => end.abort();
  const timer = setTimeout(over, Math.max(waitMs, 0));
  const leave = waits.join(over);
  call.signal.addEventListener("abort", over, { once: true });
  if (call.signal.aborted || waitMs <= 0 || !release) over();
  else call.onWait?.();
  let known: Waited | undefined;
  try {
    const look = async (event?: Event, signal = end.signal) => {
      const read = openCallsOf(context, account, kind, externalId);
      known = waitedOf(await unlessAborted(read, signal), event);
      return isReached(kind, known, until);
    };
    if (end.signal.aborted) {
      // There is no time to wait: one look, which the caller's deadline still ends.
      if (!call.signal.aborted) await look(undefined, call.signal);
    } else {
      // Attach the live part first, so that no event after the first look is missed.
      const { signal } = end;
      const reading = log.read(account, { kind, externalId }, "latest", { signal });
      const events = await unlessAborted(reading, signal);
      if (!(await look())) {
        for await (const event of follow(events, () => known?.callIsOpen === true)) {
          if (end.signal.aborted) break;
          if (await look(event)) break;
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
    call.signal.removeEventListener("abort", over);
  }
  if (call.signal.aborted) throw errorOfAbort(call.signal);
  return known;
}

/** What follows the answer of a call ends at least this long before the caller's deadline. */
const minLeftMs = 100;

/**
 * How long a call may go on after its answer is known, in milliseconds: up to shortly before the
 * caller's deadline, so that the answer still arrives. Infinity without a deadline.
 */
export function timeLeftMs({ deadlineMs }: Pick<Call, "deadlineMs">): number {
  if (deadlineMs === undefined) return Number.POSITIVE_INFINITY;
  const leftMs = deadlineMs - Date.now();
  return leftMs - Math.max(leftMs / 10, minLeftMs);
}

/**
 * A request as an `Idempotency-Key` is bound to it, without its `wait_until`: a repeat may wait for
 * something else.
 */
export function withoutWait<Request extends { readonly waitUntil: WaitUntil }>(
  request: Request,
): Request {
  if (request.waitUntil === WaitUntil.UNSPECIFIED) return request;
  return { ...request, waitUntil: WaitUntil.UNSPECIFIED };
}

/** Longest wait of a call whose caller gave no deadline, in milliseconds. */
const defaultWaitMs = 30_000;

function maxWaitMs({ deadlineMs, deadlineIsOurs }: Call): number {
  return deadlineMs === undefined || deadlineIsOurs ? defaultWaitMs : Number.POSITIVE_INFINITY;
}

/** Undefined for a caller with too many waits: it is answered at once, as without a wait. */
function placeOf({ waitLimits }: Pick<Context, "waitLimits">, { caller }: Call) {
  try {
    return waitLimits.take(caller);
  } catch {
    return undefined;
  }
}

function waitedOf({ openCalls, snapshot }: OpenCalls, event?: Event): Waited {
  return {
    current: snapshot && currentState(snapshot),
    facts: snapshot ?? noFacts,
    callIsOpen: outcomeFlags(openCalls).outcomeUnknown,
    cursor: snapshot?.cursor ?? "",
    isGivenUp: event !== undefined && endingOutcomes.has(event.callOutcome),
  };
}

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
