import { create } from "@bufbuild/protobuf";
import type { Call, Core } from "../core/core.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { WatchPaymentRequestSchema } from "../gen/payments/v1/payment_service_pb.ts";
import { WatchPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import type { KindName } from "../model/kinds.ts";
import { Live } from "./live.ts";
import { Loaders } from "./loaders.ts";
import type { Operation } from "./operation.ts";

/** What the resolvers of one GraphQL operation share. */
export interface Context {
  readonly operation: Operation;
  readonly core: Core;
  readonly call: Call;
  /** Cached reads of this operation; replaced when a mutation may have changed their values. */
  loaders: Loaders;
}

/** The context of an operation, whose caller is identified. @throws GatewayError as `authenticate` */
export async function createContext(core: Core, operation: Operation): Promise<Context> {
  const { signal, deadlineMs, request } = operation;
  const { requestId, streamsBy, idempotencyKey, slot } = request;
  const caller = await request.authenticate();
  operation.caller = caller;
  const call: Call = {
    caller,
    signal,
    requestId,
    onAbout: (externalId) => operation.about(externalId),
    transport: streamsBy,
    deadlineMs,
    deadlineIsOurs: true,
    onWait: slot.leave,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    onReplayed() {
      operation.isReplay = true;
    },
  };
  return { operation, core, call, loaders: new Loaders(core, call) };
}

/** Opens a stream in the core, behind a cursor if there is one. */
export type OpenStream = (
  core: Core,
  call: Call,
  after: string | undefined,
) => AsyncIterable<Event>;

/**
 * Makes the operation a live stream, which has no deadline. It is opened when it is first read.
 * @param after where it starts, unless the header `Last-Event-ID` says
 */
export function createLive(
  { core, call, operation }: Context,
  after: string | null | undefined,
  open: OpenStream,
): Live {
  operation.liftDeadline();
  const { lastEventId } = operation.request;
  const start = lastEventId ?? after ?? undefined;
  operation.live = new Live(call, lastEventId, (call) => open(core, call, start));
  return operation.live;
}

/** Opens the watch of a payment or payout. Behind `earliest`, which is no cursor, it has all events. */
export function watchOf(kind: KindName, externalId: string, untilFinal: boolean): OpenStream {
  return (core, call, after) => {
    const start = after === "earliest" ? { fromStart: true } : { afterCursor: after };
    return watches[kind](core, { externalId, untilFinal, ...start }, call);
  };
}

interface WatchInit {
  readonly externalId: string;
  readonly untilFinal: boolean;
  readonly afterCursor?: string | undefined;
  readonly fromStart?: boolean;
}

const watches = {
  payment: (core: Core, init: WatchInit, call: Call) =>
    core.watchPayment(create(WatchPaymentRequestSchema, init), call),
  payout: (core: Core, init: WatchInit, call: Call) =>
    core.watchPayout(create(WatchPayoutRequestSchema, init), call),
} satisfies Readonly<Record<KindName, unknown>>;
