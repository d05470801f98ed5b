import { errorOfAbort, GatewayError } from "../errors.ts";
import { currentEvent } from "../events/current.ts";
import { noFacts } from "../events/facts.ts";
import { stateAfter } from "../events/payment-state.ts";
import { type Event, WaitUntil } from "../gen/payments/v1/event_pb.ts";
import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { type OpenCalls, openCallsOf, outcomeFlags } from "../intents/settle.ts";
import type { Kind } from "../model/kinds.ts";
import type { After, Context } from "./context.ts";
import type { Call } from "./core.ts";
import { endingOutcomes } from "./watch.ts";

/** The external_id that a call waits for. */
export interface Awaited {
  readonly account: string;
  readonly kind: Kind;
  readonly externalId: string;
}

/** What was known in the end. */
export interface Waited extends After {
  /** The event that tells the current state; undefined when only the outcome of a call is open. */
  readonly current: Event | undefined;
  /** The call turned out as not done, or nobody can tell: nothing more is to be waited for. */
  readonly isGivenUp: boolean;
}

/**
 * Waits behind an answer until it is as far as the caller wants: by the event
 * log alone. A wait never fails: at its end, whatever that is, it tells what is known.
 * @returns undefined where the store cannot be asked
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
  const waitMs = maxWaitMs(call);
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
    const look = async (event?: Event) => {
      known = waitedOf(await openCallsOf(context, account, kind, externalId), event);
      return isReached(kind, known, until);
    };
    if (end.signal.aborted) {
      await look();
    } else {
      // The live part is attached first: what comes behind the first look is not missed.
      const events = await log.read(account, { kind, externalId }, "latest", {
        signal: end.signal,
      });
      let isDone = await look();
      const changes = new Changes(events);
      while (!isDone && !end.signal.aborted) {
        // A call may end without an event.
        const event = await changes.next(known?.callIsOpen ? lookMs : undefined);
        if (end.signal.aborted) break;
        isDone = await look(event);
      }
    }
  } catch {
    // The store is away, or this reader was too slow: what is known by then is told.
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

/** A request as an `Idempotency-Key` is bound to it: repeats may wait for something else. */
export function withoutWait<Request extends { readonly waitUntil: WaitUntil }>(
  request: Request,
): Request {
  if (request.waitUntil === WaitUntil.UNSPECIFIED) return request;
  return { ...request, waitUntil: WaitUntil.UNSPECIFIED };
}

/**
 * What a call that moves money answers behind its wait: the payment or payout as it is then known.
 * Where that cannot be told, its own answer.
 * @throws GatewayError as the call did, unless its outcome became known meanwhile
 */
export async function answerAfterWait<Result extends object>(
  context: Context,
  call: Call,
  about: Awaited,
  until: WaitUntil,
  made: Promise<Result>,
): Promise<Result> {
  let answer: Result | undefined;
  let lost: GatewayError | undefined;
  try {
    answer = await made;
    const recorded = context.recorded.get(answer);
    // What is not on record cannot be waited for: its own callback may never come.
    if (recorded && !recorded.appended) return answer;
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.details.outcomeUnknown) throw error;
    if (call.signal.aborted) throw error;
    lost = error;
  }
  const known = await wait(context, call, about, until);
  // A copy: the events of the payment share the message, and what is known is of this answer.
  const told = known?.current?.resource.value;
  const result = told && ({ ...told } as Result);
  if (lost && (!result || known?.callIsOpen || known?.isGivenUp)) throw lost;
  if (!known || !result) return answer as Result;
  context.waited.set(result, known);
  return result;
}

/** How often it is looked whether a call is over that keeps a wait from its end, in milliseconds. */
const lookMs = 500;

/** How long a call waits whose caller names no deadline, in milliseconds. */
const defaultWaitMs = 30_000;

/** So long before the caller's deadline it is told what is known, at least. */
const minLeftMs = 100;

function maxWaitMs({ deadlineMs, deadlineIsOurs }: Call): number {
  if (deadlineMs === undefined) return defaultWaitMs;
  const leftMs = deadlineMs - Date.now();
  const waitMs = leftMs - Math.max(leftMs / 10, minLeftMs);
  return deadlineIsOurs ? Math.min(waitMs, defaultWaitMs) : waitMs;
}

/** A caller with too many waits is answered at once, as without one. */
function placeOf({ waitLimits }: Pick<Context, "waitLimits">, { caller }: Call) {
  try {
    return waitLimits.take(caller);
  } catch {
    return undefined;
  }
}

function waitedOf({ openCalls, snapshot }: OpenCalls, event?: Event): Waited {
  return {
    current: snapshot && currentEvent(snapshot),
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
  return current?.resource.case === "payment" && Boolean(current.resource.value.action?.value);
}

const openStates: ReadonlySet<PaymentState> = new Set([
  PaymentState.UNSPECIFIED,
  PaymentState.PENDING,
  PaymentState.UNKNOWN,
]);

/** The events of a topic, one at a time, each awaited for a while at most. */
class Changes {
  readonly #events: AsyncIterator<Event>;
  /** Asked for, and not there yet. */
  #next: Promise<IteratorResult<Event>> | undefined;

  constructor(events: AsyncIterable<Event>) {
    this.#events = events[Symbol.asyncIterator]();
  }

  /** @returns undefined when none came in time */
  async next(forMs: number | undefined): Promise<Event | undefined> {
    this.#next ??= this.#events.next();
    // An error that nobody waits for any more is no unhandled one.
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
