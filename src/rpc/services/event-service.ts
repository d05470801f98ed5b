import type { ServiceImpl } from "@connectrpc/connect";
import type { Call, Core } from "../../core/core.ts";
import type { EventService } from "../../gen/payments/v1/event_service_pb.ts";
import { callOf } from "../gated-call.ts";
import { eventStream } from "./event-stream.ts";

/** Implements the contract's EventService: an account's events, and watch tokens. */
export function eventService(core: Core): ServiceImpl<typeof EventService> {
  return {
    streamEvents(request, context) {
      const open = (call: Call) => core.streamEvents(request, call);
      return eventStream(open, context, request);
    },
    listEvents: (request, context) => core.listEvents(request, callOf(context)),
    createWatchToken: (request, context) => core.createWatchToken(request, callOf(context)),
  };
}
