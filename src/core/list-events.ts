import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { errorOfAbort, GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import {
  CreateWatchTokenRequestSchema,
  CreateWatchTokenResponseSchema,
  type ListEventsRequest,
  ListEventsRequestSchema,
  type ListEventsResponse,
  ListEventsResponseSchema,
  StreamEventsRequestSchema,
} from "../gen/payments/v1/event_service_pb.ts";
import type { EventLog } from "../ledger/log.ts";
import { kindOf } from "../model/kinds.ts";
import type { Cursor } from "../stores/cursor.ts";
import type { Context } from "./context.ts";
import type { Call, Core, History, HistoryPage } from "./core.ts";
import { pageTokenOf, placeOfToken } from "./page-token.ts";
import { validate } from "./validate.ts";
import { stream } from "./watch.ts";

const defaultPageSize = 50;
const maxPageSize = 1_000;

/** The events of a payment or payout, from the oldest or from the newest on. */
export type EventList = Pick<ListEventsRequest, "kind" | "externalId" | "newestFirst">;

/**
 * One page of the events of a payment or payout. A page token names the last event of the previous
 * page, so that events stored meanwhile do not shift the pages.
 */
export async function listEvents(
  log: EventLog,
  request: ListEventsRequest,
  call: Call,
): Promise<ListEventsResponse> {
  const size = Math.min(request.pageSize || defaultPageSize, maxPageSize);
  const token = { text: request.pageToken, field: "page_token" };
  const { events, hasMore } = await pageOf(log, request, size, token, call);
  const last = hasMore ? events.at(-1) : undefined;
  return create(ListEventsResponseSchema, {
    events,
    ...(last && { nextPageToken: tokenOf(request, last.cursor) }),
  });
}

/** A page of the same list, with a page token for each event. */
export async function history(
  log: EventLog,
  list: EventList,
  { first, after }: HistoryPage,
  call: Call,
): Promise<History> {
  const token = { text: after, field: "after" };
  const { events, hasMore } = await pageOf(log, list, first, token, call);
  const edges = events.map((node) => ({ cursor: tokenOf(list, node.cursor), node }));
  return { edges, hasNextPage: hasMore, hasPreviousPage: after !== "" };
}

/**
 * @throws GatewayError INVALID_ARGUMENT for a text that is not a token of this list, OUT_OF_RANGE
 * for a token that is no longer valid
 */
async function pageOf(
  log: EventLog,
  list: EventList,
  size: number,
  token: { readonly text: string; readonly field: string },
  call: Call,
): Promise<{ events: Event[]; hasMore: boolean }> {
  const place = placeOfToken(nameOf(list), token, cursorForm);
  const found = await (list.newestFirst ? newest : oldest)(log, list, call, place, size + 1);
  return { events: found.slice(0, size), hasMore: found.length > size };
}

type Page = (
  log: EventLog,
  list: EventList,
  call: Call,
  place: Cursor | undefined,
  limit: number,
) => Promise<Event[]>;

const newest: Page = async (log, { kind, externalId }, { caller }, place, limit) => {
  const events = await log.history(caller.account, kindOf(kind), externalId, limit, place);
  return events.reverse();
};

const oldest: Page = async (log, { kind: number, externalId }, call, place, limit) => {
  const kind = kindOf(number);
  const { account } = call.caller;
  const [last] = await log.history(account, kind, externalId, 1);
  const found: Event[] = [];
  const gone = new AbortController();
  const signal = AbortSignal.any([call.signal, gone.signal]);
  const events = await log.read(account, { kind, externalId }, place ?? "earliest", { signal });
  try {
    if (!last || (place !== undefined && place >= last.cursor)) return found;
    // Events stored after the request are for a later page.
    for await (const event of events) {
      if (event.cursor <= last.cursor) found.push(event);
      if (event.cursor >= last.cursor || found.length === limit) return found;
    }
    throw errorOfAbort(signal);
  } finally {
    gone.abort();
    await events[Symbol.asyncIterator]().return?.();
  }
};

/** A token is valid only for its list: the same payment or payout, in the same order. */
function tokenOf(list: EventList, cursor: Cursor): string {
  return pageTokenOf(nameOf(list), cursor);
}

function nameOf({ kind, externalId, newestFirst }: EventList): readonly unknown[] {
  return [kind, externalId, newestFirst];
}

const cursorForm = /^[0-9a-f]{18}-[0-9a-f]{8}$/;

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
