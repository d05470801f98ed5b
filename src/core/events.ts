import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { GatewayError } from "../errors.ts";
import {
  CreateWatchTokenRequestSchema,
  CreateWatchTokenResponseSchema,
  ListEventsRequestSchema,
  StreamEventsRequestSchema,
} from "../gen/payments/v1/event_service_pb.ts";
import { kindOf } from "../model/kinds.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";
import { listEvents } from "./list-events.ts";
import { validate } from "./validate.ts";
import { stream } from "./watch.ts";

const defaultTtlSeconds = 900;

/** The events of an account, and tokens to watch single payments and payouts. */
export function eventCases(context: Context) {
  const { watchTokens } = context;
  return {
    streamEvents: (request, call) =>
      stream({ log: context.log, intents: context.intents, drain: context.drain, call }, () => {
        validate(StreamEventsRequestSchema, request);
        return { kinds: request.kinds, after: request.afterCursor };
      }),

    async listEvents(request, call) {
      validate(ListEventsRequestSchema, request);
      return listEvents(context.log, request, call);
    },

    async createWatchToken(request, call) {
      validate(CreateWatchTokenRequestSchema, request);
      if (!watchTokens) {
        throw new GatewayError("FAILED_PRECONDITION", "WATCH_TOKEN_SECRET is not set", {
          reason: "WATCH_TOKENS_OFF",
        });
      }
      const { kind, externalId, ttl } = request;
      const ttlSeconds = ttl ? Number(ttl.seconds) : (request.ttlSeconds ?? defaultTtlSeconds);
      const expiresAtMs = (Math.floor(Date.now() / 1_000) + ttlSeconds) * 1_000;
      const { account } = call.caller;
      const token = await watchTokens.issue({
        account,
        kind: kindOf(kind),
        externalId,
        expiresAtMs,
      });
      return create(CreateWatchTokenResponseSchema, {
        token,
        expiresAt: timestampFromMs(expiresAtMs),
      });
    },
  } satisfies Partial<Core>;
}
