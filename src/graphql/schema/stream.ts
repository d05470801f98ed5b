import type { Call, Core } from "../../core/core.ts";
import { GatewayError } from "../../errors.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import { type Context, operationTimeoutMs, renewLoaders } from "../context.ts";

/** An event, or the error that ended the stream of them. */
export type Delivery = { readonly event: Event } | { readonly error: unknown };

type StreamContext = Pick<Context, "core" | "call" | "liftDeadline" | "live">;

/**
 * A stream of the core for a GraphQL client. It ends with its client: `return()` and the call's
 * signal both reach the core, whichever comes first. An error does not break it but is its last
 * delivery, since the transports treat a broken stream each in their own way.
 */
export function deliveries(
  { core, call: { deadlineMs: _, ...call }, liftDeadline, live }: StreamContext,
  open: (core: Core, call: Call) => AsyncIterable<Event>,
): AsyncIterableIterator<Delivery> {
  liftDeadline();
  const hooks = {
    resumed: live.lastEventId !== undefined,
    onOpen: (from: string | undefined) => live.open(from),
    onFail: () => live.fail(),
    push(event: Event) {
      if (ended || !live.push?.(event)) return false;
      live.cursor = event.cursor;
      return true;
    },
  };
  // Ends with the call's signal, and before it where a client ends one stream of several.
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
  // Nobody reads errors any more while a stream is closed.
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
      } catch (error) {
        if (ended) return { done: true, value: undefined };
        endQuietly();
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

const streamLeft = new GatewayError("CANCELLED", "the caller went away");

/** Resolves one delivery. The links of each event are read anew, within a time of their own. */
export function received(delivery: Delivery, context: Context): Event {
  if ("error" in delivery) {
    throw delivery.error ?? new GatewayError("INTERNAL", "the stream failed");
  }
  renewLoaders(context, { ...context.call, deadlineMs: Date.now() + operationTimeoutMs });
  return delivery.event;
}
