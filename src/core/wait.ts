import { errorOfAbort } from "../errors.ts";
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
import { timeLeftMs } from "./time-left.ts";
import { unlessAborted } from "./unless-aborted.ts";
import { endingOutcomes } from "./watch.ts";

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
      let isDone = await look();
      const changes = new Changes(events);
      while (!isDone && !end.signal.aborted) {
        // An open call may end without an event, so look again every `lookMs`.
        const event = await changes.next(known?.callIsOpen ? lookMs : undefined);
        if (end.signal.aborted) break;
        isDone = await look(event);
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

/** How often a wait checks whether the open call that it waits for has ended, in milliseconds. */
const lookMs = 500;

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
    facts: snapshot?.facts ?? noFacts,
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

/** Reads the events of a topic one at a time, each within a time limit. */
class Changes {
  readonly #events: AsyncIterator<Event>;
  /** The pending request for the next event. */
  #next: Promise<IteratorResult<Event>> | undefined;

  constructor(events: AsyncIterable<Event>) {
    this.#events = events[Symbol.asyncIterator]();
  }

  /** @returns undefined when no event came in time */
  async next(forMs: number | undefined): Promise<Event | undefined> {
    this.#next ??= this.#events.next();
    // Without this, an error that is not awaited any more would be an unhandled rejection.
    this.#next.catch(() => {});
    if (forMs === undefined) return this.#taken(await this.#next);
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), forMs);
    });
    const result = await Promise.race([this.#next, timeUp]);
    clearTimeout(timer);
    return result && this.#taken(result);
  }

  #taken(result: IteratorResult<Event>): Event | undefined {
    this.#next = undefined;
    if (result.done) throw new Error("the log has ended");
    return result.value;
  }
}
