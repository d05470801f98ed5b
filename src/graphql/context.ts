import { create } from "@bufbuild/protobuf";
import { type Call, type Core, methods } from "../core/core.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { KindName } from "../model/kinds.ts";
import { Live } from "./live.ts";
import { Loaders, names } from "./loaders.ts";
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

/**
 * Makes the operation a live stream, which has no deadline. It is opened when it is first read.
 * @param after where it starts, unless the header `Last-Event-ID` says
 */
export function createLive(
  { call, operation }: Context,
  after: string | null | undefined,
  open: (call: Call, after: string | undefined) => AsyncIterable<Event>,
): Live {
  operation.liftDeadline();
  const { lastEventId } = operation.request;
  const start = lastEventId ?? after ?? undefined;
  operation.live = new Live(call, lastEventId, (call) => open(call, start));
  return operation.live;
}

/** The watch of a payment or payout. Behind `earliest`, which is no cursor, it has all events. */
export function createWatch(
  context: Context,
  kind: KindName,
  externalId: string,
  untilFinal: boolean,
  after: string | null | undefined,
): Live {
  return createLive(context, after, (call, after) => {
    const start = after === "earliest" ? { fromStart: true } : { afterCursor: after };
    const name = names[kind].watch;
    const request = create(methods[name].input, { externalId, untilFinal, ...start });
    return context.core[name](request as never, call);
  });
}
