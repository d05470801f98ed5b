import { create } from "@bufbuild/protobuf";
import type { Call, Core } from "../../src/core/core.ts";
import {
  type ErrorCode,
  errorOfAbort,
  GatewayError,
  type GatewayErrorDetails,
} from "../../src/errors.ts";
import {
  type Event,
  EventKind,
  EventSchema,
  EventSource,
} from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";

/** A stream of the core that a test feeds by hand; it reports when it is opened and released. */
export interface Feed {
  /** To be used as a core's `watchPayment`, `watchPayout` or `streamEvents`. */
  readonly watch: (request: unknown, call: Call) => AsyncIterable<Event>;
  push(...events: Event[]): void;
  /** Whether the edge waits for an event. */
  waits(): boolean;
  /**
   * Pushes an event past the stream, as the core does while the edge waits; behind its end too, when
   * the edge must not take it. Returns whether the edge took it.
   */
  offer(event: Event): boolean;
  fail(error: unknown): void;
  finish(): void;
  /** Resolves with the request and the call when the stream is opened. */
  readonly opened: Promise<{ request: unknown; call: Call }>;
  /** Resolves when the stream is released, for whatever reason. */
  readonly released: Promise<void>;
}

export function createFeed(): Feed {
  const opened = Promise.withResolvers<{ request: unknown; call: Call }>();
  const released = Promise.withResolvers<void>();
  const steps: (() => Event | undefined)[] = [];
  let wake = Promise.withResolvers<void>();
  let waits = false;
  let isOver = false;
  let push: Call["push"];
  const step = (next: () => Event | undefined) => {
    steps.push(next);
    wake.resolve();
  };

  async function* watch(request: unknown, call: Call): AsyncGenerator<Event> {
    call.signal.addEventListener("abort", () => wake.resolve());
    opened.resolve({ request, call });
    push = call.push;
    call.onOpen?.(undefined);
    try {
      for (;;) {
        const next = steps.shift();
        if (next) {
          const event = next();
          if (!event) return;
          yield event;
        } else {
          if (call.signal.aborted) throw errorOfAbort(call.signal);
          waits = true;
          await wake.promise;
          waits = false;
          wake = Promise.withResolvers();
        }
      }
    } finally {
      isOver = true;
      released.resolve();
    }
  }

  return {
    watch,
    push: (...events) => {
      for (const event of events) step(() => event);
    },
    waits: () => waits,
    offer: (event) => (waits || isOver) && push?.(event) === true,
    fail: (error) =>
      step(() => {
        throw error;
      }),
    finish: () => step(() => undefined),
    opened: opened.promise,
    released: released.promise,
  };
}

/** A core whose stream opens at `from`, has these events, and ends, with the error if there is one. */
export const streaming = (
  from: string | undefined,
  events: readonly Event[],
  error?: Error,
): Partial<Core> => ({
  async *watchPayment(_, { onOpen }) {
    onOpen?.(from);
    yield* events;
    if (error) throw error;
  },
});

/** A core whose stream is refused before it opens. */
export function refusing(code: ErrorCode, details: GatewayErrorDetails = {}): Partial<Core> {
  return {
    // biome-ignore lint/correctness/useYield: it fails first
    async *watchPayment() {
      throw new GatewayError(code, "refused", details);
    },
  };
}

/** An event of the payment `order-1`. */
export function paymentEvent(cursor: string, status: PaymentStatus): Event {
  return create(EventSchema, {
    cursor,
    kind: EventKind.PAYMENT,
    externalId: "order-1",
    paymentId: "pay-1",
    source: EventSource.CALLBACK,
    receivedAt: { seconds: 1795255200n, nanos: 0 },
    final: status >= PaymentStatus.SUCCESS,
    resource: {
      case: "payment",
      value: { externalId: "order-1", details: { status, operationId: "op-1" } },
    },
  });
}

/** An event of the payout `payout-1`. */
export function payoutEvent(cursor: string, status: string): Event {
  return create(EventSchema, {
    cursor,
    kind: EventKind.PAYOUT,
    externalId: "payout-1",
    transactionId: "tx-1",
    source: EventSource.RESPONSE,
    receivedAt: { seconds: 1795255200n, nanos: 0 },
    resource: { case: "payout", value: { status } },
  });
}
