import type { Call, Core } from "../../core/core.ts";
import { invalidFields } from "../../core/validate.ts";
import { GatewayError } from "../../errors.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import type { Context } from "../context.ts";

/** An event, or the error that ended the stream. */
export type Delivery = { readonly event: Event } | { readonly error: unknown };

/**
 * Iterates a stream of the core for a GraphQL client. `return()` and the call's signal, whichever
 * comes first, end the stream in the core. An error is the last delivery and is not thrown, since
 * each transport treats an iterator that throws in its own way.
 */
export function deliveries(
  { core, call: { deadlineMs: _, ...call }, operation }: Context,
  open: (core: Core, call: Call) => AsyncIterable<Event>,
): AsyncIterableIterator<Delivery> {
  const { live } = operation;
  operation.liftDeadline();
  const hooks = {
    onOpen: (from: string | undefined) => live.open(from),
    onFail: () => live.fail(),
    push(event: Event) {
      if (ended || !live.push?.(event)) return false;
      live.cursor = event.cursor;
      return true;
    },
  };
  // Aborts with the call's signal, or earlier if a client ends one of several streams.
  const gone = new AbortController();
  const { signal } = gone;
  let events: AsyncIterator<Event> | undefined;
  let ended = false;

  async function end(): Promise<void> {
    ended = true;
    call.signal.removeEventListener("abort", endQuietly);
    gone.abort(call.signal.aborted ? call.signal.reason : streamLeft);
    await events?.return?.();
  }
  // Errors while a stream is closed are dropped: it has no reader any more.
  const endQuietly = () => void end().catch(() => undefined);

  call.signal.addEventListener("abort", endQuietly, { once: true });
  return {
    async next() {
      if (ended || call.signal.aborted) return { done: true, value: undefined };
      try {
        events ??= open(core, { ...call, ...hooks, signal })[Symbol.asyncIterator]();
        const { done, value } = await events.next();
        if (!done) {
          live.cursor = value.cursor;
          return { done: false, value: { event: value } };
        }
        await end();
      } catch (thrown) {
        if (ended) return { done: true, value: undefined };
        endQuietly();
        const error = live.lastEventId === undefined ? thrown : aboutHeader(thrown);
        live.failed(error);
        return { done: false, value: { error } };
      }
      return { done: true, value: undefined };
    },
    async return() {
      await end().catch(() => undefined);
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** An error about the cursor names the header that the cursor came in. */
function aboutHeader(error: unknown): unknown {
  const [field] = (error instanceof GatewayError && error.details.fields) || [];
  if (field?.path !== "after_cursor") return error;
  return invalidFields([{ ...field, path: "Last-Event-ID" }]);
}

const streamLeft = new GatewayError("CANCELLED", "the caller went away");

/** The event of a delivery. @throws the error of a delivery that is one */
export function received(delivery: Delivery): Event {
  if ("event" in delivery) return delivery.event;
  throw delivery.error ?? new GatewayError("INTERNAL", "the stream failed");
}
