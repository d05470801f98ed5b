import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { GatewayError } from "../errors.ts";
import {
  CreateWatchTokenResponseSchema,
  type ListEventsRequest,
} from "../gen/payments/v1/event_service_pb.ts";
import { kindOf } from "../model/kinds.ts";
import { cursorForm } from "../stores/cursor.ts";
import type { Context } from "./context.ts";
import type { Call, Core, History } from "./core.ts";
import { pageTokens } from "./page-token.ts";
import { stream } from "./watch.ts";

const defaultPageSize = 50;
const maxPageSize = 1_000;

/**
 * One page of the events of a payment or payout, from the oldest or from the newest on. A page
 * token names the last event of the previous page, so that events stored meanwhile do not shift the
 * pages.
 * @throws GatewayError INVALID_ARGUMENT for a text that is not a token of this list, OUT_OF_RANGE
 * for a token that is no longer valid
 */
async function listEvents(
  { ledger }: Context,
  { externalId, newestFirst, pageSize, pageToken, ...request }: ListEventsRequest,
  { caller: { account } }: Call,
): Promise<History> {
  const kind = kindOf(request.kind);
  const { tokenOf, placeOf } = pageTokens([kind, externalId, newestFirst], cursorForm);
  const place = placeOf(pageToken, "page_token");
  const size = Math.min(pageSize || defaultPageSize, maxPageSize);
  const found = await ledger.history(account, kind, externalId, size + 1, place, newestFirst);
  if (newestFirst) found.reverse();
  const edges = found.slice(0, size).map((node) => ({ cursor: tokenOf(node.cursor), node }));
  const hasNextPage = found.length > size;
  const endCursor = hasNextPage ? edges.at(-1)?.cursor : undefined;
  return { edges, hasNextPage, hasPreviousPage: pageToken !== "", endCursor };
}

const defaultTtlSeconds = 900;

/** The events of an account, and tokens to watch single payments and payouts. */
export function eventCases(context: Context) {
  const { watchTokens } = context;
  return {
    streamEvents: ({ kinds, afterCursor }, call) =>
      stream(context, call, undefined, afterCursor, { kinds }),

    listEvents: (request, call) => listEvents(context, request, call),

    async createWatchToken(request, call) {
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
